# SPDX-License-Identifier: Apache-2.0
"""The structures of runnel's headers, field by field; tests/python/test_python_layout.py compares them with a C
compiler's. A class is called as its structure in C, which it names in `c_name`."""

from __future__ import annotations

import ctypes as c

MAX_RANK = 8


def structure(c_name: str, *fields):
    """A ctypes structure."""
    return type(c_name, (c.Structure,), {"_fields_": list(fields), "c_name": c_name})


Error = structure(
    "rnl_error", ("status", c.c_int), ("native_code", c.c_int32), ("length", c.c_uint32),
    ("lines_left_out", c.c_uint32), ("message", c.c_char * 4096), ("is_callers", c.c_bool))

DeviceInfo = structure(
    "rnl_device_info", ("platform_index", c.c_uint32), ("device_index", c.c_uint32), ("type", c.c_int),
    ("name", c.c_char * 128), ("vendor", c.c_char * 64), ("platform", c.c_char * 64),
    ("device_version", c.c_char * 96), ("driver_version", c.c_char * 64), ("opencl_c_version", c.c_char * 64),
    ("pci_bus_id", c.c_char * 16), ("numa_node", c.c_int32), ("vendor_id", c.c_uint32),
    ("compute_units", c.c_uint32), ("clock_mhz", c.c_uint32), ("global_memory_bytes", c.c_uint64),
    ("max_allocation_bytes", c.c_uint64), ("local_memory_bytes", c.c_uint64), ("max_work_group_size", c.c_uint64),
    ("base_align_bytes", c.c_uint32), ("unified_memory", c.c_bool), ("is_default", c.c_bool),
    ("emulated", c.c_bool), ("has_fp64", c.c_bool), ("has_fp16_arithmetic", c.c_bool), ("has_images", c.c_bool),
    ("compiler_available", c.c_bool), ("whole_units", c.c_uint32), ("first_unit", c.c_uint32),
    ("most_shares", c.c_uint32), ("numa_shares", c.c_uint32))

DeviceOptions = structure(
    "rnl_device_options", ("struct_size", c.c_size_t), ("compute_units", c.c_uint32),
    ("memory_limit_bytes", c.c_uint64), ("pinned_limit_bytes", c.c_uint64), ("memory_fraction", c.c_double),
    ("pool_exact", c.c_bool))

DeviceStats = structure(
    "rnl_device_stats", ("pool_in_use_bytes", c.c_size_t), ("pool_reserved_bytes", c.c_size_t),
    ("pool_peak_bytes", c.c_size_t), ("pool_budget_bytes", c.c_size_t), ("programs_compiled", c.c_uint64),
    ("programs_loaded", c.c_uint64), ("kernels_launched", c.c_uint64))

ValueInfo = structure(
    "rnl_value_info", ("name", c.c_char_p), ("dtype", c.c_int), ("rank", c.c_size_t), ("shape", c.c_int64 * MAX_RANK),
    ("dim_names", c.c_char_p * MAX_RANK))

Metadata = structure("rnl_metadata", ("key", c.c_char_p), ("value", c.c_char_p))

GraphInfo = structure(
    "rnl_graph_info", ("ir_version", c.c_int64), ("opset", c.c_int64), ("producer_name", c.c_char_p),
    ("producer_version", c.c_char_p), ("graph_name", c.c_char_p), ("node_count", c.c_size_t),
    ("initializer_count", c.c_size_t), ("parameter_count", c.c_uint64))

OperatorInfo = structure(
    "rnl_operator_info", ("domain", c.c_char_p), ("op_type", c.c_char_p), ("node_count", c.c_size_t),
    ("unsupported_count", c.c_size_t), ("reason", c.c_char_p))

OperatorSupport = structure(
    "rnl_operator_support", ("domain", c.c_char_p), ("op_type", c.c_char_p), ("since", c.c_int32), ("until", c.c_int32),
    ("types", c.c_uint32))

Tensor = structure(
    "rnl_tensor", ("name", c.c_char_p), ("dtype", c.c_int), ("rank", c.c_size_t), ("shape", c.c_int64 * MAX_RANK),
    ("data", c.c_void_p), ("buffer", c.c_void_p), ("offset_bytes", c.c_size_t), ("size_bytes", c.c_size_t))

Progress = structure(
    "rnl_progress", ("name", c.c_char_p), ("done", c.c_size_t), ("total", c.c_size_t), ("from_cache", c.c_bool))

ModelOptions = structure(
    "rnl_model_options", ("struct_size", c.c_size_t), ("plan_cache_bytes", c.c_size_t), ("progress", c.c_void_p),
    ("progress_user", c.c_void_p), ("precision", c.c_int), ("deterministic", c.c_bool),
    ("weight_budget_bytes", c.c_size_t))

ModelStats = structure(
    "rnl_model_stats", ("weight_bytes", c.c_size_t), ("plan_count", c.c_size_t), ("plan_bytes", c.c_size_t),
    ("plans_built", c.c_uint64), ("plans_evicted", c.c_uint64), ("last_plan_ns", c.c_uint64),
    ("program_count", c.c_size_t))

StepProfile = structure(
    "rnl_step_profile", ("node", c.c_char_p), ("op_type", c.c_char_p), ("also", c.c_char_p),
    ("implementation", c.c_char_p), ("file", c.c_char_p), ("kernel", c.c_char_p), ("time_ns", c.c_uint64),
    ("flops", c.c_uint64), ("bytes", c.c_uint64), ("device_clock", c.c_bool))

SessionStats = structure(
    "rnl_session_stats", ("arena_bytes", c.c_size_t), ("arena_peak_bytes", c.c_size_t), ("step_count", c.c_size_t),
    ("weight_ring_bytes", c.c_size_t))

MultiOptions = structure(
    "rnl_multi_options", ("struct_size", c.c_size_t), ("policy", c.c_int), ("in_flight", c.c_uint32),
    ("model", c.c_void_p), ("shares", c.c_void_p), ("trace", c.c_void_p))

MultiDevice = structure(
    "rnl_multi_device", ("device", c.c_void_p), ("is_lost", c.c_bool), ("share", c.c_size_t), ("requests", c.c_uint64),
    ("failures", c.c_uint64), ("requests_per_s", c.c_double), ("rows_per_s", c.c_double), ("model", ModelStats))

PipelineOptions = structure(
    "rnl_pipeline_options", ("struct_size", c.c_size_t), ("depth", c.c_uint32), ("memory_bytes", c.POINTER(c.c_uint64)),
    ("inputs", c.POINTER(Tensor)), ("input_count", c.c_size_t), ("estimate", c.c_bool), ("model", c.c_void_p),
    ("trace", c.c_void_p))

PipelineStage = structure(
    "rnl_pipeline_stage", ("device", c.c_size_t), ("first_node", c.c_size_t), ("node_count", c.c_size_t),
    ("first_name", c.c_char_p), ("weight_bytes", c.c_size_t), ("arena_bytes", c.c_size_t),
    ("crossing_bytes", c.c_size_t), ("expected_ns", c.c_double), ("is_measured", c.c_bool), ("run_count", c.c_uint64),
    ("busy_ns", c.c_uint64))

# As rnl_custom_attribute and rnl_custom_arg_kind count them.
CUSTOM_ATTRIBUTES = ("ABSENT", "FLOAT", "INT", "STRING", "TENSOR", "FLOATS", "INTS", "STRINGS")
CUSTOM_ARGS = ("INPUT", "OUTPUT", "SCRATCH", "VALUE")

TensorDesc = structure(
    "rnl_tensor_desc", ("dtype", c.c_int), ("rank", c.c_size_t), ("shape", c.c_int64 * MAX_RANK), ("host", c.c_void_p))

CustomCall = structure(
    "rnl_custom_call", ("node", c.c_void_p), ("domain", c.c_char_p), ("op_type", c.c_char_p), ("name", c.c_char_p),
    ("version", c.c_int64), ("inputs", c.POINTER(TensorDesc)), ("input_count", c.c_size_t),
    ("output_count", c.c_size_t), ("user", c.c_void_p))

CustomArg = structure(
    "rnl_custom_arg", ("kind", c.c_int), ("index", c.c_size_t), ("value", c.c_void_p), ("size_bytes", c.c_size_t))

KernelOptions = structure(
    "rnl_kernel_options", ("struct_size", c.c_size_t), ("defines", c.POINTER(c.c_char_p)), ("define_count", c.c_size_t),
    ("build_options", c.c_char_p), ("source_name", c.c_char_p), ("include_folders", c.POINTER(c.c_char_p)),
    ("include_folder_count", c.c_size_t), ("log", c.c_void_p), ("log_user", c.c_void_p))

Range = structure("rnl_range", ("dimensions", c.c_uint32), ("global", c.c_size_t * 3), ("local", c.c_size_t * 3))

CustomLaunch = structure(
    "rnl_custom_launch", ("struct_size", c.c_size_t), ("source", c.c_char_p), ("path", c.c_char_p),
    ("kernel", c.c_char_p), ("options", c.POINTER(KernelOptions)), ("args", c.POINTER(CustomArg)),
    ("arg_count", c.c_size_t), ("range", Range), ("flops", c.c_uint64), ("bytes", c.c_uint64))

CustomOperator = structure(
    "rnl_custom_operator", ("struct_size", c.c_size_t), ("domain", c.c_char_p), ("op_type", c.c_char_p),
    ("since_version", c.c_int64), ("min_inputs", c.c_uint32), ("max_inputs", c.c_uint32), ("min_outputs", c.c_uint32),
    ("max_outputs", c.c_uint32), ("contents", c.c_uint32), ("infer", c.c_void_p), ("plan", c.c_void_p),
    ("compute", c.c_void_p), ("user", c.c_void_p), ("release", c.c_void_p))

QuantizerOptions = structure(
    "rnl_quantizer_options", ("struct_size", c.c_size_t), ("ranges", c.c_int), ("percentile", c.c_double),
    ("signed_activations", c.c_bool))

QuantizerLayer = structure(
    "rnl_quantizer_layer", ("name", c.c_char_p), ("op_type", c.c_char_p), ("output", c.c_size_t), ("is_kept", c.c_bool))

ALL = (Error, DeviceInfo, DeviceOptions, DeviceStats, ValueInfo, Metadata, GraphInfo, OperatorInfo, OperatorSupport,
       Tensor, Progress, ModelOptions, ModelStats, StepProfile, SessionStats, MultiOptions, MultiDevice, PipelineOptions,
       PipelineStage, TensorDesc, CustomCall, CustomArg, KernelOptions, Range, CustomLaunch, CustomOperator,
       QuantizerOptions, QuantizerLayer)
