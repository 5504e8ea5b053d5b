# SPDX-License-Identifier: Apache-2.0
"""What a session is asked, and what it tells."""

from __future__ import annotations

import ctypes as c
import dataclasses
from typing import Any, Callable, Mapping, Optional, Sequence, Tuple, Type, TypeVar, Union

from . import _structs as s
from ._device import text
from ._errors import InvalidArgument
from ._library import PROGRESS
from ._trace import Trace


# As rnl_precision counts them.
PRECISIONS = {None: 0, "f32": 1, "bf16": 2}


@dataclasses.dataclass
class SessionOptions:
    """`plan_cache_bytes`: plans for earlier shapes that are kept, 0 for 64 MiB. `progress`: called with (name, done,
    total) for each program that is compiled or loaded, from the thread that opens or runs; it must not raise.
    `precision`: "f32", or "bf16": convolutions and products with constant weights multiply bfloat16 and add up in
    float32, where the device can; elsewhere there is a warning in the log, and float32. `deterministic`: an item's result
    has the same bits in each run, alone and in any batch. `weight_budget_bytes`: weights stay in host memory and are
    copied through so much device memory ahead of the steps that read them; 0 keeps them on the device."""

    plan_cache_bytes: int = 0
    progress: Optional[Callable[[str, int, int], None]] = None
    precision: Optional[str] = None
    deterministic: bool = False
    weight_budget_bytes: int = 0


@dataclasses.dataclass
class PipelineOptions(SessionOptions):
    """A Pipeline's, beside those of SessionOptions, which are for each stage. `depth`: batches that may be under way for
    each stage, at most 64; 0 is 2. `memory_bytes`: what each device may use for its stage, in the devices' order; None,
    or 0 in it, is what its pool has left. `inputs`: a batch as `run` takes it, which the cut is made for; needed where the
    model leaves dimensions free, and batches of other shapes run, too. `estimate`: the cut goes by arithmetic and memory
    traffic, and nothing is measured. `trace`: as `Pipeline.trace`, with the opening."""

    depth: int = 0
    memory_bytes: Optional[Sequence[int]] = None
    inputs: Optional[Mapping[str, Any]] = None
    estimate: bool = False
    trace: Optional[Trace] = None


Options = TypeVar("Options", bound=SessionOptions)


def _typed(options: Any, kind: Type[Options]) -> Options:
    if options is None:
        return kind()
    if isinstance(options, kind) and (kind is not SessionOptions or not isinstance(options, PipelineOptions)):
        return options
    if isinstance(options, SessionOptions) and not isinstance(options, PipelineOptions):
        options = {field.name: getattr(options, field.name) for field in dataclasses.fields(SessionOptions)}
    if not isinstance(options, Mapping):
        raise InvalidArgument(f"options are a {type(options).__name__}; give a {kind.__name__} or a dict")
    unknown = set(options) - {field.name for field in dataclasses.fields(kind)}
    if unknown:
        raise InvalidArgument(f"there is no option {', '.join(sorted(map(repr, unknown)))}")
    return kind(**options)


def make_options(given: Union[None, SessionOptions, Mapping[str, Any]]) -> SessionOptions:
    return _check(_typed(given, SessionOptions))


def make_pipeline_options(given: Union[None, SessionOptions, Mapping[str, Any]]) -> PipelineOptions:
    options = _check(_typed(given, PipelineOptions))
    if not isinstance(options.depth, int) or not 0 <= options.depth < 2**32:
        raise InvalidArgument(f"depth is {options.depth!r}")
    if not isinstance(options.estimate, bool):
        raise InvalidArgument(f"estimate is {options.estimate!r}; it can be True or False")
    if options.memory_bytes is not None:
        sizes = options.memory_bytes
        if not isinstance(sizes, Sequence) or not all(isinstance(size, int) and 0 <= size < 2**64 for size in sizes):
            raise InvalidArgument(f"memory_bytes is {sizes!r:.60}; give a list of sizes, one a device")
    return options


def _check(options: Options) -> Options:
    for name in ("plan_cache_bytes", "weight_budget_bytes"):
        size = getattr(options, name)
        if not isinstance(size, int) or not 0 <= size < 2**64:
            raise InvalidArgument(f"{name} is {size!r}")
    if options.progress is not None and not callable(options.progress):
        raise InvalidArgument("progress cannot be called")
    if not isinstance(options.precision, (str, type(None))) or options.precision not in PRECISIONS:
        raise InvalidArgument(f"precision is {options.precision!r}; it can be 'f32' or 'bf16'")
    if not isinstance(options.deterministic, bool):
        raise InvalidArgument(f"deterministic is {options.deterministic!r}; it can be True or False")
    return options


def model_options(options: SessionOptions) -> Tuple[Any, Any]:
    """As the C library takes them, and the progress callback, which lives as long as the model: each new plan calls it."""
    report = options.progress
    progress = PROGRESS(lambda _, row: report(row.contents.name.decode(), row.contents.done,
                                              row.contents.total)) if report else None
    return s.ModelOptions(c.sizeof(s.ModelOptions), options.plan_cache_bytes,
                          c.cast(progress, c.c_void_p) if progress else None, None, PRECISIONS[options.precision],
                          options.deterministic, options.weight_budget_bytes), progress


@dataclasses.dataclass(frozen=True)
class StepProfile:
    """One step of a run. `also`: other operators that the step does as well (" + Relu"). `flops` and `bytes` are what the
    operation needs at least. `device_clock` False: measured from outside, launching included."""

    node: str
    op_type: str
    also: str
    implementation: str
    file: str
    kernel: str
    time_ns: int
    flops: int
    bytes: int
    device_clock: bool


def step_profile(raw: Any) -> StepProfile:
    values = {field.name: getattr(raw, field.name) for field in dataclasses.fields(StepProfile)}
    return StepProfile(**{name: text(value) if isinstance(value, (type(None), type(b""))) else value
                          for name, value in values.items()})
