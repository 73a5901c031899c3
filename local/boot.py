# Runs first in a sandbox, before the driver and long before a user's code: what
# has to hold for every process of the sandbox is set here and inherited.
#
# `payload` is the open file that this code came from. What follows in it is a
# dictionary from the names of the driver's modules to their bytecode; it exists
# in no file that a user's code could see. sys.argv[1:] are the descriptors of
# commands and events, which the driver takes from 0 and 1, and the limits: address
# space, processes, open files, file size.
import marshal
import os
import resource
import sys
from _frozen_importlib import ModuleSpec


class _Modules:
    """Imports the driver's modules."""

    def __init__(self, code):
        self._code = code

    def find_spec(self, name, path=None, target=None):
        if name not in self._code:
            return None
        return ModuleSpec(name, self, origin="driver", is_package=name == "pydriver")

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        code = self._code[module.__name__]
        module.__file__ = code.co_filename
        exec(code, module.__dict__)


def _limit(space, processes, files, size):
    _set("AS", space, "lower the option memory")
    _set("NOFILE", files)
    _set("FSIZE", size, "lower the option disk")
    _set("CORE", 0)
    _set("MEMLOCK", 0)
    _set("MSGQUEUE", 0)
    _set("SIGPENDING", 1024)
    # The supervisor keeps a few processes in reserve, so that it can start a new
    # kernel while a fork bomb holds all that the kernels may have.
    _set("NPROC", processes + 8, "lower the option processes")
    os.register_at_fork(
        after_in_child=lambda: resource.setrlimit(resource.RLIMIT_NPROC, (processes, processes))
    )
    os.nice(5)  # the gateway and its other work come first


def _set(name, limit, remedy=None):
    """Sets a limit, or ends with what keeps it from being set and how to mend it."""
    what = getattr(resource, "RLIMIT_" + name)
    try:
        resource.setrlimit(what, (limit, limit))
    except (OSError, ValueError):
        remedies = filter(None, (remedy, "raise the limit for the gateway (ulimit, systemd)"))
        sys.exit(
            "a sandbox needs RLIMIT_%s of %d, and the gateway may give it %d: %s"
            % (name, limit, resource.getrlimit(what)[1], ", or ".join(remedies))
        )


def _main():
    code = marshal.load(payload)
    payload.close()
    commands, events, *limits = map(int, sys.argv[1:])
    os.dup2(commands, 0)
    os.dup2(events, 1)
    # Descriptors that the gateway inherited without close-on-exec end here.
    os.closerange(3, 1 << 20)
    _limit(*limits)
    del sys.argv[1:]
    sys.meta_path.insert(0, _Modules(code))
    from pydriver import supervisor

    supervisor.main()


_main()
