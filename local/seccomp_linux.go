// Copyright 2026 The Caddy Code Interpreter Authors
//
// Licensed under the Apache License, Version 2.0 (the "License");
// you may not use this file except in compliance with the License.
// You may obtain a copy of the License at
//
//     http://www.apache.org/licenses/LICENSE-2.0
//
// Unless required by applicable law or agreed to in writing, software
// distributed under the License is distributed on an "AS IS" BASIS,
// WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
// See the License for the specific language governing permissions and
// limitations under the License.

package local

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"runtime"

	seccomp "github.com/elastic/go-seccomp-bpf"
	"github.com/elastic/go-seccomp-bpf/arch"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// The filter is an allow list: CPython, the scientific stack, a shell and the
// usual command line tools need about 210 calls, all old and stable, while the
// list of dangerous ones grows with each kernel. What a newer kernel or C
// library adds is answered with ENOSYS, as an older kernel would, so programs
// fall back (glibc from clone3 to clone, coreutils from new calls to old ones).
//
// Left out on purpose although harmless elsewhere: memfd_create, shmget, mq_open
// and setxattr hold memory that neither a tmpfs size nor a process's resident
// set accounts for; of inotify's instances a user has few, and a gateway that is
// no root is the same user.

// allowedCalls are let through whatever their arguments. Names that an
// architecture does not have (fork on arm64) are left out there; one call has
// two of them, newfstatat on amd64 and fstatat on arm64.
var allowedCalls = []string{
	// files
	"access", "chdir", "chmod", "chown", "close", "close_range", "copy_file_range", "creat", "dup", "dup2", "dup3",
	"faccessat", "faccessat2", "fadvise64", "fallocate", "fchdir", "fchmod", "fchmodat", "fchmodat2", "fchown",
	"fchownat", "fcntl", "fdatasync", "fgetxattr", "flistxattr", "flock", "fstat", "fstatat", "fstatfs", "fsync",
	"ftruncate", "futimesat", "getcwd", "getdents", "getdents64", "getxattr", "lchown", "lgetxattr", "link", "linkat", "listxattr",
	"llistxattr", "lseek", "lstat", "mkdir", "mkdirat", "mknod", "mknodat", "newfstatat", "open", "openat", "openat2",
	"pread64", "preadv", "preadv2", "pwrite64", "pwritev", "pwritev2", "read", "readahead", "readlink", "readlinkat",
	"readv", "rename", "renameat", "renameat2", "rmdir", "sendfile", "splice", "stat", "statfs", "statx", "symlink",
	"symlinkat", "sync_file_range", "tee", "truncate", "umask", "unlink", "unlinkat", "utime", "utimensat", "utimes",
	"write", "writev",
	// memory
	"brk", "madvise", "membarrier", "mincore", "mlock", "mmap", "mprotect", "mremap", "msync", "munlock", "munmap",
	// processes and threads
	"arch_prctl", "execve", "execveat", "exit", "exit_group", "fork", "futex", "futex_waitv", "get_robust_list",
	"getcpu", "getegid", "geteuid", "getgid", "getgroups", "getpgid", "getpgrp", "getpid", "getppid", "getpriority",
	"getresgid", "getresuid", "getrlimit", "getrusage", "getsid", "gettid", "getuid", "kill", "pidfd_open",
	"pidfd_send_signal", "prctl", "prlimit64", "restart_syscall", "rseq", "sched_get_priority_max",
	"sched_get_priority_min", "sched_getaffinity", "sched_getparam", "sched_getscheduler", "sched_rr_get_interval",
	"sched_setaffinity", "sched_yield", "set_robust_list", "set_tid_address", "setpgid", "setpriority", "setrlimit",
	"setsid", "tgkill", "times", "tkill", "vfork", "wait4", "waitid",
	// signals and time
	"alarm", "clock_getres", "clock_gettime", "clock_nanosleep", "getitimer", "gettimeofday", "nanosleep", "pause",
	"rt_sigaction", "rt_sigpending", "rt_sigprocmask", "rt_sigqueueinfo", "rt_sigreturn", "rt_sigsuspend",
	"rt_sigtimedwait", "rt_tgsigqueueinfo", "setitimer", "sigaltstack", "signalfd", "signalfd4", "time",
	"timer_create", "timer_delete", "timer_getoverrun", "timer_gettime", "timer_settime", "timerfd_create",
	"timerfd_gettime", "timerfd_settime",
	// waiting, pipes and sockets that exist already
	"accept", "accept4", "bind", "connect", "epoll_create", "epoll_create1", "epoll_ctl", "epoll_pwait",
	"epoll_pwait2", "epoll_wait", "eventfd", "eventfd2", "getpeername", "getsockname", "getsockopt", "listen", "pipe", "pipe2", "poll", "ppoll", "pselect6",
	"recvfrom", "recvmmsg", "recvmsg", "select", "sendmmsg", "sendmsg", "sendto", "shutdown",
	// the system
	"getrandom", "sysinfo", "uname",
}

// refusedCalls are answered with EPERM instead of ENOSYS: the kernel has them,
// and a program (or a person who audits the sandbox) is told that it may not.
var refusedCalls = []string{
	"add_key", "keyctl", "request_key",
	"bpf", "perf_event_open", "userfaultfd", "io_uring_setup", "io_uring_enter", "io_uring_register",
	"ptrace", "process_vm_readv", "process_vm_writev", "kcmp", "personality",
	"unshare", "setns", "mount", "umount2", "pivot_root", "chroot", "move_mount", "open_tree", "fsopen", "fsmount",
	"fsconfig", "fspick", "mount_setattr", "name_to_handle_at", "open_by_handle_at", "fanotify_init", "quotactl",
	"syslog", "init_module", "finit_module", "delete_module", "kexec_load", "kexec_file_load", "reboot", "acct",
	"swapon", "swapoff", "settimeofday", "clock_settime", "clock_adjtime", "adjtimex", "iopl", "ioperm", "modify_ldt",
	"sethostname", "setdomainname", "setxattr", "lsetxattr", "fsetxattr",
}

// allowedIoctls are the requests of terminals, pipes and sockets. A list of
// forbidden ones would have to know each driver; TIOCSTI and TIOCLINUX, which
// type into another terminal, are the known ones.
var allowedIoctls = []uint32{
	unix.TCGETS, unix.TCSETS, unix.TCSETSW, unix.TCSETSF, unix.TIOCGWINSZ, unix.TIOCSWINSZ, unix.TIOCGPGRP,
	unix.TIOCSPGRP, unix.TIOCGSID, unix.TIOCSCTTY, unix.TIOCNOTTY, unix.TIOCGPTN, unix.TIOCSPTLCK, unix.TIOCGPTPEER,
	unix.TIOCINQ, unix.TIOCOUTQ, fionbio, fioclex, fionclex,
}

// Requests that x/sys/unix does not name; the same on amd64 and arm64.
const (
	fionbio  = 0x5421
	fionclex = 0x5450
	fioclex  = 0x5451
)

// namespaceFlags are all CLONE_NEW* bits that clone(2) understands.
const namespaceFlags = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC |
	unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET

// Offsets in struct seccomp_data of a little-endian machine.
const (
	offsetNr   = 0
	offsetArch = 4
	offsetArg0 = 16
	offsetArg1 = 24
	offsetArg2 = 32
)

// seccompProgram returns the filter for the machine's architecture in the form
// that the kernel and `bwrap --seccomp` take.
func seccompProgram() ([]byte, error) {
	instructions, err := seccompInstructions()
	if err != nil {
		return nil, err
	}
	raw, err := bpf.Assemble(instructions)
	if err != nil {
		return nil, fmt.Errorf("assembling the seccomp filter: %w", err)
	}
	var out bytes.Buffer
	if err := binary.Write(&out, binary.NativeEndian, raw); err != nil {
		return nil, fmt.Errorf("encoding the seccomp filter: %w", err)
	}
	return out.Bytes(), nil
}

// seccompInstructions puts the checks that the library gets wrong in front of
// the program that it assembles from the names:
//
//   - it sends a foreign architecture to the default action, which is a way
//     round the filter for `int $0x80` as soon as that action is no kill;
//   - after a failed argument condition it compares the argument, not the call's
//     number, with the rest of its list (socket(40) would pass as sendfile).
func seccompInstructions() ([]bpf.Instruction, error) {
	info, err := nativeArch()
	if err != nil {
		return nil, err
	}
	policy := seccomp.Policy{
		DefaultAction: seccomp.ActionErrno,
		Syscalls: []seccomp.SyscallGroup{
			{Action: seccomp.ActionAllow, Names: known(info, allowedCalls)},
			{Action: seccomp.ActionErrno | seccomp.Action(unix.EPERM), Names: known(info, refusedCalls)},
		},
	}
	list, err := policy.Assemble()
	if err != nil {
		return nil, fmt.Errorf("assembling the seccomp filter: %w", err)
	}
	// The library knows no errno for the default; its last instruction returns it.
	list[len(list)-1] = refuse(unix.ENOSYS)

	program := foreignCallsDie(info)
	program = append(program, checkedCalls(info)...)
	return append(program, list...), nil
}

// nativeArch describes the calls of the architecture that this process runs on.
func nativeArch() (*arch.Info, error) {
	switch runtime.GOARCH {
	case "amd64", "arm64":
		return arch.GetInfo("")
	default:
		return nil, fmt.Errorf("no system call filter for %s: sandbox local runs on amd64 and arm64 only", runtime.GOARCH)
	}
}

// foreignCallsDie kills a process that calls the kernel by another architecture's
// table, where the same number means another call: i386 by the architecture
// field, x32 (which shares that field with amd64) by its bit in the number. It
// leaves the call's number loaded.
func foreignCallsDie(info *arch.Info) []bpf.Instruction {
	program := []bpf.Instruction{
		bpf.LoadAbsolute{Off: offsetArch, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: uint32(info.ID), SkipTrue: 1},
		bpf.RetConstant{Val: unix.SECCOMP_RET_KILL_PROCESS},
		bpf.LoadAbsolute{Off: offsetNr, Size: 4},
	}
	if info.ID == arch.X86_64.ID {
		program = append(program,
			bpf.JumpIf{Cond: bpf.JumpGreaterOrEqual, Val: uint32(arch.X32.SeccompMask), SkipFalse: 1},
			bpf.RetConstant{Val: unix.SECCOMP_RET_KILL_PROCESS},
		)
	}
	return program
}

// checkedCalls decides the calls that depend on an argument. The kernel looks at
// the low half of each of these arguments only, and so does the filter.
func checkedCalls(info *arch.Info) []bpf.Instruction {
	// Sockets of the one family that leads nowhere else. The network namespace is
	// empty anyway, but AF_VSOCK and AF_NETLINK do not stop at it.
	onlyUnix := []bpf.Instruction{
		bpf.LoadAbsolute{Off: offsetArg0, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.AF_UNIX, SkipFalse: 1},
		allow(),
		refuse(unix.EAFNOSUPPORT),
	}
	noNamespaces := []bpf.Instruction{
		bpf.LoadAbsolute{Off: offsetArg0, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: namespaceFlags, SkipFalse: 1},
		refuse(unix.EPERM),
		allow(),
	}
	// What lies in a socket is the kernel's memory: it keeps the size that the
	// watchdog counts it with. The answer is success, as where the system's largest
	// size is this one.
	sizedSockets := []bpf.Instruction{
		bpf.LoadAbsolute{Off: offsetArg1, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.SOL_SOCKET, SkipFalse: 3},
		bpf.LoadAbsolute{Off: offsetArg2, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.SO_SNDBUF, SkipFalse: 1},
		refuse(0),
		allow(),
	}
	ioctls := make([]bpf.Instruction, 0, 2*len(allowedIoctls)+2)
	ioctls = append(ioctls, bpf.LoadAbsolute{Off: offsetArg1, Size: 4})
	for _, request := range allowedIoctls {
		ioctls = append(ioctls, bpf.JumpIf{Cond: bpf.JumpEqual, Val: request, SkipFalse: 1}, allow())
	}
	ioctls = append(ioctls, refuse(unix.ENOTTY))

	var program []bpf.Instruction
	for _, call := range []struct {
		name string
		body []bpf.Instruction
	}{
		{"socket", onlyUnix},
		{"socketpair", onlyUnix},
		{"setsockopt", sizedSockets},
		{"clone", noNamespaces},
		{"ioctl", ioctls},
	} {
		program = append(program, bpf.JumpIf{
			Cond: bpf.JumpEqual, Val: uint32(info.SyscallNames[call.name]), SkipFalse: uint8(len(call.body)),
		})
		program = append(program, call.body...)
	}
	return program
}

// known returns the names that the architecture has.
func known(info *arch.Info, names []string) []string {
	var out []string
	for _, name := range names {
		if _, ok := info.SyscallNames[name]; ok {
			out = append(out, name)
		}
	}
	return out
}

func allow() bpf.Instruction { return bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW} }

func refuse(errno unix.Errno) bpf.Instruction {
	return bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(errno)}
}
