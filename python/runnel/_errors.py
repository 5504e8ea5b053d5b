# SPDX-License-Identifier: Apache-2.0
"""Exceptions: one class for each status of the C library."""

from __future__ import annotations


class Error(Exception):
    """A call failed. Its text is the whole reason: the cause on the first line, then where it happened.

    `status` is the C library's name of it ("INVALID_ARGUMENT"); `native_code` the OpenCL driver's code, 0 without one.
    """

    status = "INTERNAL"
    native_code = 0

    def __init__(self, message: str = "", native_code: int = 0):
        super().__init__(message)
        self.native_code = native_code


class Cancelled(Error):
    """The run was stopped before its end."""

    status = "CANCELLED"


class InvalidArgument(Error, ValueError):
    """A wrong name, shape or type, or a file that is not a sound model."""

    status = "INVALID_ARGUMENT"


class DeadlineExceeded(Error):
    """Something took longer than was allowed."""

    status = "DEADLINE_EXCEEDED"


class NotFound(Error):
    """No such file, or no such device: the message lists the devices that there are."""

    status = "NOT_FOUND"


class ResourceExhausted(Error, MemoryError):
    """Memory or another limit; the message names it."""

    status = "RESOURCE_EXHAUSTED"


class FailedPrecondition(Error):
    """The call is right, but not now: the session is closed, or this process is a fork of one that used a device."""

    status = "FAILED_PRECONDITION"


class Unimplemented(Error, NotImplementedError):
    """The model has operators or types that runnel does not have; the message names them all."""

    status = "UNIMPLEMENTED"


class Unavailable(Error):
    """Busy; the same call may work later."""

    status = "UNAVAILABLE"


class DataLoss(Error):
    """A file is cut off or corrupt."""

    status = "DATA_LOSS"


class Internal(Error):
    """A driver, or runnel itself, failed."""

    status = "INTERNAL"


BY_STATUS = {cls.status: cls for cls in (Cancelled, InvalidArgument, DeadlineExceeded, NotFound, ResourceExhausted,
                                         FailedPrecondition, Unimplemented, Unavailable, DataLoss, Internal)}


def make(status: str, message: str, native_code: int = 0) -> Error:
    """The exception of a status' name."""
    error = BY_STATUS.get(status, Error)(message, native_code)
    error.status = status
    return error
