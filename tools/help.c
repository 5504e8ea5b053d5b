/* SPDX-License-Identifier: Apache-2.0 */
#include "cli.h"

#include <string.h>

static const char help_all[] =
    "usage: runnel info [--json]              platforms, devices, capabilities and caches\n"
    "       runnel info MODEL [options]       inputs, outputs, metadata and operators of an ONNX model\n"
    "       runnel run MODEL [options]        run a model once on an OpenCL device\n"
    "       runnel bench MODEL [options]      how long a run takes, and each of its steps\n"
    "       runnel compare MODEL --against X  where the values of a run differ from another device's or a reference's\n"
    "       runnel bench SUBJECT [options]    what the runtime does at best on a device\n"
    "       runnel tune SUBJECT [options]     measure variants, and keep the fastest for later runs on this device\n"
    "       runnel COMMAND --help             the options of a command\n"
    "       runnel --version\n"
    "\n"
    "exit codes: 0 done, 1 failed, 2 wrong usage\n";

static const char help_info[] =
    "usage: runnel info [MODEL [--device SPEC] [--shape [NAME=]1x3x48x320]...] [--json]\n"
    "\n"
    "Without a model: OpenCL platforms, devices and what they can do, which one is the default, and the caches.\n"
    "With a model: its inputs, outputs, opset, metadata, and its operators with whether each is supported;\n"
    "exit code 1 if one is not. With --device or --shape it is also planned and run once with random inputs, to say\n"
    "what runs each operator there.\n"
    "\n"
    "      --device SPEC, --shape, --threads N  as for `runnel run`\n"
    "      --json                 print JSON\n"
    "      --help                 print this\n";

static const char help_run[] =
    "usage: runnel run MODEL [options]\n"
    "\n"
    "Runs an ONNX model and prints one line for each output: name, type, shape, smallest, largest and mean value.\n"
    "\n"
    "  -i, --input [NAME=]SOURCE  where an input comes from; once for each input. NAME= may be left out where the\n"
    "                             model has one input. An input not named gets random:0. SOURCE is one of\n"
    "                               file.npy               a numpy array\n"
    "                               picture.png, .jpg      see below\n"
    "                               random, random:SEED    floats in [0,1); integers and bool 0 or 1\n"
    "                               zeros\n"
    "      --shape NAME=1x3x48x320  shape of an input that random or zeros fill (a free dimension is 1 without it)\n"
    "  -o, --output DIR           write each output to DIR/NAME.npy\n"
    "      --device SPEC          0:0 (platform:device), gpu, cpu, or part of a device's name; else RUNNEL_DEVICE,\n"
    "                             else the default that `runnel info` shows\n"
    "      --threads N            use N of a CPU device's threads\n"
    "      --repeat N             after the first run, N timed ones: prints their latency\n"
    "      --top K                print the K largest values of the first output, sample by sample\n"
    "      --labels FILE          with --top: names of the classes, one a line\n"
    "      --verbose              say on stderr what is compiled, which kernel each step uses, and memory\n"
    "                             (also: RUNNEL_VERBOSE=1)\n"
    "      --help                 print this\n"
    "\n"
    "A picture becomes (pixel/255 - mean)/std, three channels:\n"
    "      --size HxW             resize to that (bilinear); default: the model's size if fixed, else as it is\n"
    "      --mean A,B,C           default 0; one number stands for all three; in the order of --color\n"
    "      --std A,B,C            default 1\n"
    "      --layout nchw|nhwc     default: nhwc where the model's input ends in 3 channels, else nchw\n"
    "      --color rgb|bgr        default rgb\n";

static const char help_bench[] =
    "usage: runnel bench MODEL [options]\n"
    "\n"
    "Runs an ONNX model for a while, then takes samples of at least 50 ms each, and prints the time of one run: the\n"
    "samples' median, the smallest, and the one that 90% do not exceed.\n"
    "\n"
    "  -i, --shape, --device, --threads, --verbose, and how pictures are read: as for `runnel run`\n"
    "      --repeat N             N samples (default 20), and N runs for --layers\n"
    "      --seconds S            the samples together take at least S seconds (default 1)\n"
    "      --warm S               run for S seconds before (default 1)\n"
    "      --layers               then measure each step: its time, and how near that is to what the device's\n"
    "                             arithmetic or memory allows, as two short kernels find it\n"
    "      --sort run|time        with --layers: in the order of the run (default), or the longest first\n"
    "      --json FILE            write all figures to FILE\n"
    "      --tune                 first measure the variants of each kernel, and keep the choice of the fastest for "
    "all\n"
    "                             later runs on this device (in the cache folder)\n"
    "      --streams N            also run N sessions at a time, each run following the one before: prints runs a "
    "second\n"
    "                             beside one session's\n"
    "      --help                 print this\n";

static const char help_compare[] =
    "usage: runnel compare MODEL --against cpu|reference|DEVICE [options]\n"
    "\n"
    "Runs an ONNX model node by node, without fusing, here and elsewhere, and compares what each node computes: "
    "prints\n"
    "the first node beyond 1e-4 + 1e-3 * |other value|, the ten that are worst, and the outputs. Exit code 1 when an\n"
    "output is beyond it, or a number of another type differs.\n"
    "\n"
    "      --against SPEC         reference: onnxruntime, else onnx.reference, in RUNNEL_PYTHON, else python3;\n"
    "                             else a device, as --device takes it\n"
    "      --all                  print every node\n"
    "  -i, --shape, --device, --threads, --verbose, and how pictures are read: as for `runnel run`\n"
    "      --help                 print this\n";

static const char help_tune[] = "usage: runnel tune SUBJECT [options]\n"
                                "\n"
                                "Measures variants on a device and keeps the choice of the fastest for all later runs "
                                "on it (in the cache folder).\n"
                                "For the kernels of a model: `runnel bench MODEL --tune`.\n"
                                "\n";

const char *rnl_cli_help(const char *command)
{
    if (strcmp(command, "tune") == 0)
        return help_tune;
    if (strcmp(command, "run") == 0)
        return help_run;
    if (strcmp(command, "compare") == 0)
        return help_compare;
    if (strcmp(command, "bench") == 0)
        return help_bench;
    return strcmp(command, "info") == 0 ? help_info : help_all;
}
