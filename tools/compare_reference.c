/* SPDX-License-Identifier: Apache-2.0 */
/*
 * onnxruntime, or else onnx.reference, as the other side: a Python process that says which one it took, and files of
 * numpy's between. onnx.reference of itself is wrong here and there (BatchNormalization of opset 9).
 */
#include "compare.h"
#include "file.h"
#include "npy.h"

#include <errno.h>
#include <jansson.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static const char script[] =
    "import json, sys\n"
    "try:\n"
    "    import numpy, onnx\n"
    "except ImportError as error:\n"
    "    sys.exit(f'{sys.executable}: {error} (pip install onnx onnxruntime)')\n"
    "folder, path = sys.argv[1:]\n"
    "names = json.load(open(folder + '/names.json', encoding='utf-8'))\n"
    "model = onnx.load(path)\n"
    "kinds = {i.name: onnx.helper.tensor_dtype_to_np_dtype(i.type.tensor_type.elem_type) for i in model.graph.input}\n"
    "feeds = {name: numpy.load(f'{folder}/input_{i}.npy').astype(kinds[name])\n"
    "         for i, name in enumerate(names['inputs'])}\n"
    "def by_onnxruntime():\n"
    "    import onnxruntime\n"
    "    made = {name for node in model.graph.node for name in node.output}\n"
    "    known = {output.name for output in model.graph.output}\n"
    "    wanted = [name for name in names['values'] if name in made | known]\n"
    "    more = [onnx.helper.make_empty_tensor_value_info(name) for name in wanted if name not in known]\n"
    "    wide = onnx.ModelProto()\n"
    "    wide.CopyFrom(model)\n"
    "    wide.graph.output.extend(more)\n"
    "    options = onnxruntime.SessionOptions()\n"
    "    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL\n"
    "    options.log_severity_level = 4\n"
    "    session = onnxruntime.InferenceSession(wide.SerializeToString(), options, "
    "providers=['CPUExecutionProvider'])\n"
    "    values = dict(zip(wanted, session.run(wanted, feeds)))\n"
    "    print(f'against onnxruntime {onnxruntime.__version__}, without its optimisations')\n"
    "    return values\n"
    "def by_onnx():\n"
    "    from onnx.reference import ReferenceEvaluator\n"
    "    values = ReferenceEvaluator(model).run(None, feeds, intermediate=True)\n"
    "    print(f'against onnx.reference {onnx.__version__}')\n"
    "    return values\n"
    "try:\n"
    "    values = by_onnxruntime()\n"
    "except Exception as error:\n"
    "    print(f'no answer from onnxruntime: {error}', file=sys.stderr)\n"
    "    values = by_onnx()\n"
    "for i, name in enumerate(names['values']):\n"
    "    value = values.get(name)\n"
    "    if isinstance(value, (numpy.ndarray, numpy.generic)) and value.dtype.kind not in 'OSU':\n"
    "        value = numpy.asarray(value, order='C')\n"
    "        numpy.save(f'{folder}/value_{i}.npy', value if value.dtype.isbuiltin else value.astype('float32'))\n";

static void path_of(char *out_path, size_t capacity, const char *folder, const char *kind, size_t index)
{
    snprintf(out_path, capacity, "%s/%s_%zu.npy", folder, kind, index);
}

static json_t *input_names(const rnl_job *job)
{
    json_t *names = json_array();
    for (size_t i = 0; i < job->inputs.count; i++)
        json_array_append_new(names, json_string(job->inputs.infos[i].name));
    return names;
}

static json_t *value_names(const rnl_job *job)
{
    json_t *names = json_array();
    for (size_t i = 0; i < job->output_count; i++)
        json_array_append_new(names, json_string(job->output_infos[i].name));
    return names;
}

static rnl_exit write_question(const rnl_job *job, const char *folder)
{
    char path[512];
    snprintf(path, sizeof path, "%s/names.json", folder);
    json_t *names = json_pack("{so so}", "inputs", input_names(job), "values", value_names(job));
    const bool written = names && json_dump_file(names, path, 0) == 0;
    json_decref(names);
    if (!written)
        return rnl_cli_fail("%s cannot be written", path);
    for (size_t i = 0; i < job->inputs.count; i++) {
        path_of(path, sizeof path, folder, "input", i);
        FILE *file = fopen(path, "wb");
        bool done = file && rnl_npy_write(file, &job->inputs.tensors[i]);
        done = file && fclose(file) == 0 && done;
        if (!done)
            return rnl_cli_fail("%s: %s", path, strerror(errno));
    }
    return RNL_EXIT_DONE;
}

static rnl_exit ask(const rnl_job *job, char *folder)
{
    const char *given = getenv("RUNNEL_PYTHON");
    char python[512], model[4096], text[sizeof script];
    char option[] = "-c";
    pid_t child;
    int status = 0;
    snprintf(python, sizeof python, "%s", given && *given ? given : "python3");
    snprintf(model, sizeof model, "%s", job->options.model);
    memcpy(text, script, sizeof script);
    char *arguments[] = {python, option, text, folder, model, NULL};
    const int code = posix_spawnp(&child, python, NULL, NULL, arguments, environ);
    if (code != 0)
        return rnl_cli_fail("%s cannot be started: %s (RUNNEL_PYTHON names another one)", python, strerror(code));
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return rnl_cli_fail("waiting for %s: %s", python, strerror(errno));
    if (status != 0)
        return rnl_cli_fail("the reference failed: what %s said stands above", python);
    return RNL_EXIT_DONE;
}

static rnl_exit read_answer(const rnl_job *job, const char *folder, rnl_tensor *out_values)
{
    char path[512];
    rnl_exit code = RNL_EXIT_DONE;
    for (size_t i = 0; code == RNL_EXIT_DONE && i < job->output_count; i++) {
        uint64_t size;
        path_of(path, sizeof path, folder, "value", i);
        FILE *file = rnl_file_open(path, &size);
        if (!file)
            continue; /* a sequence, or inside a function */
        code = rnl_npy_read(file, size, path, &out_values[i]);
        fclose(file);
    }
    return code;
}

static void remove_all(const rnl_job *job, const char *folder)
{
    char path[512];
    for (size_t i = 0; i < job->inputs.count; i++) {
        path_of(path, sizeof path, folder, "input", i);
        (void)unlink(path);
    }
    for (size_t i = 0; i < job->output_count; i++) {
        path_of(path, sizeof path, folder, "value", i);
        (void)unlink(path);
    }
    snprintf(path, sizeof path, "%s/names.json", folder);
    (void)unlink(path);
    (void)rmdir(folder);
}

rnl_exit rnl_compare_reference(const rnl_job *job, rnl_tensor *out_values)
{
    const char *parent = getenv("TMPDIR");
    char folder[256];
    const int length = snprintf(folder, sizeof folder, "%s/runnel-XXXXXX", parent && *parent ? parent : "/tmp");
    if (length < 0 || (size_t)length >= sizeof folder)
        return rnl_cli_fail("TMPDIR is too long");
    if (!mkdtemp(folder))
        return rnl_cli_fail("%s: %s", folder, strerror(errno));
    rnl_exit code = write_question(job, folder);
    if (code == RNL_EXIT_DONE)
        code = ask(job, folder);
    if (code == RNL_EXIT_DONE)
        code = read_answer(job, folder, out_values);
    remove_all(job, folder);
    return code;
}
