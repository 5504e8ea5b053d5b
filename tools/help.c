/* SPDX-License-Identifier: Apache-2.0 */
#include "cli.h"

#include <string.h>

static const char help_all[] =
    "usage: runnel info [--json]              platforms, devices, capabilities and caches\n"
    "       runnel info MODEL [options]       inputs, outputs, metadata and operators of an ONNX model\n"
    "       runnel run MODEL [options]        run a model once on an OpenCL device\n"
    "       runnel bench MODEL [options]      how long a run takes, and each of its steps\n"
    "       runnel compare MODEL --against X  where the values of a run differ from another device's or a reference's\n"
    "       runnel quantize MODEL --calibrate DIR  an 8-bit copy of a model, and a report of what that costs\n"
    "       runnel bench SUBJECT [options]    what the runtime does at best on a device\n"
    "       runnel tune MODEL [options]       measure the ways to do each layer, and keep the fastest for later runs\n"
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
    "      --device SPEC, --shape, --threads N, --memory F  as for `runnel run`\n"
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
    "                             SPEC/2: half of its compute units, SPEC/2.1: the second half, SPEC/numa1\n"
    "                             Several: gpu,cpu or 0:0,1:0, or all: a batch is split over them by their speed\n"
    "      --threads N            use N of a CPU device's threads\n"
    "      --memory F             take at most this part of the device's memory (0.25), by default all, or a share's\n"
    "      --precision f32|bf16   bf16: multiply bfloat16 where the device can, which is faster and less accurate\n"
    "      --report               with --precision bf16: how far outputs are from float32's\n"
    "      --deterministic        the same bits in each run, alone and in any batch (also: RUNNEL_DETERMINISTIC=1)\n"
    "      --weights-budget B     weights stay in host memory, and pass through B bytes (also 512M, 2G) of the "
    "device's\n"
    "                             ahead of the steps that read them: for models that do not fit\n"
    "      --repeat N             after the first run, N timed ones: prints their latency\n"
    "      --device A,B --pipeline  cut the model into stages, one a device (a device may be named twice), each with "
    "its\n"
    "                             own part of the weights; several batches are under way at a time\n"
    "      --depth N              with --pipeline: so many batches for each stage (default 2)\n"
    "      --top K                print the K largest values of the first output, sample by sample\n"
    "      --labels FILE          with --top: names of the classes, one a line\n"
    "      --trace FILE           write what the host and the device did, and when, as Chrome trace JSON, which\n"
    "                             ui.perfetto.dev opens; with several devices a track for each, with --pipeline for\n"
    "                             each stage\n"
    "      --trace-every N        with --trace: record every N-th run, the first included; default: the first five,\n"
    "                             then as many as cost at most 1% of the time\n"
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
    "  -i, --shape, --device, --threads, --memory, --verbose, and how pictures are read: as for `runnel run`\n"
    "      --precision f32|bf16, --report, --deterministic, --weights-budget B  as for `runnel run`\n"
    "      --repeat N             N samples (default 20), and N runs for --layers\n"
    "      --seconds S            the samples together take at least S seconds (default 1)\n"
    "      --warm S               run for S seconds before (default 1)\n"
    "      --layers               then measure each step: its time, and how near that is to what the device's\n"
    "                             arithmetic or memory allows, as two short kernels find it\n"
    "      --sort run|time        with --layers: in the order of the run (default), or the longest first\n"
    "      --json FILE            write all figures to FILE\n"
    "      --trace FILE           record the first run, and 10 spread between the samples, not in them: see\n"
    "                             `runnel run`; with several devices N requests, with --pipeline N batches behind "
    "them\n"
    "      --tune                 first measure the variants of each kernel, and keep the choice of the fastest for "
    "all\n"
    "                             later runs on this device (in the cache folder)\n"
    "      --streams N            also run N sessions at a time, each run following the one before: prints runs a "
    "second\n"
    "                             beside one session's; with several devices, so many requests at a time\n"
    "      --device A,B --pipeline, --depth N  as for `runnel run`: prints the stages, and batches a second beside\n"
    "                             those of the first device alone\n"
    "\n"
    "With --device gpu,cpu or all: each device alone, then all together, by whole requests and by a batch that is "
    "split.\n"
    "\n"
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
    "  -i, --shape, --device, --threads, --memory, --verbose, and how pictures are read: as for `runnel run`\n"
    "      --help                 print this\n";

static const char help_quantize[] =
    "usage: runnel quantize MODEL --calibrate DIR [options]\n"
    "\n"
    "Writes a copy of an ONNX model that computes on 8-bit integers (QuantizeLinear and DequantizeLinear around its\n"
    "convolutions and products), with ranges as they are on inputs like those to come, and prints how far it is from\n"
    "the model, layer by layer.\n"
    "\n"
    "      --calibrate DIR        inputs: each .npy file or picture in it is one; where the model has several inputs,\n"
    "                             each folder in it holds NAME.npy for all of them\n"
    "  -o, --output FILE          where to write it (default: MODEL with -int8 in its name)\n"
    "      --ranges KIND          minmax: all values that occur (default); percentile: all but the outermost;\n"
    "                             mse: what has the least squared error\n"
    "      --percentile P         with --ranges percentile: so many of 100 values are inside (default 99.99)\n"
    "      --activations u8|s8    the type between layers (default u8; weights are s8)\n"
    "      --keep NAME            leave this layer in float32; may be given several times\n"
    "      --max-error E          leave those layers in float32 that cost most, until the outputs' relative error\n"
    "                             (the root of the squared error over the squared values) is at most E\n"
    "      --device, --threads, --memory, --verbose, and how pictures are read: as for `runnel run`\n"
    "      --help                 print this\n";

static const char help_tune[] =
    "usage: runnel tune MODEL [options]\n"
    "       runnel tune SUBJECT [options]\n"
    "\n"
    "Measures on a device, with nothing else to do, the ways that there are to do each layer of a model, or a "
    "subject's\n"
    "variants, and keeps the choice of the fastest for all later runs on it (in the cache folder).\n"
    "\n"
    "  -i, --shape, --device, --threads, --memory, --verbose, and how pictures are read: as for `runnel run`\n"
    "      --help                 print this\n"
    "\n";

const char *rnl_cli_help(const char *command)
{
    if (strcmp(command, "tune") == 0)
        return help_tune;
    if (strcmp(command, "run") == 0)
        return help_run;
    if (strcmp(command, "compare") == 0)
        return help_compare;
    if (strcmp(command, "quantize") == 0)
        return help_quantize;
    if (strcmp(command, "bench") == 0)
        return help_bench;
    return strcmp(command, "info") == 0 ? help_info : help_all;
}
