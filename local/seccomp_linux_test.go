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
	"encoding/binary"
	"slices"
	"testing"

	"github.com/elastic/go-seccomp-bpf/arch"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// call is one system call as the filter sees it.
type call struct {
	arch uint32
	nr   uint32
	args [6]uint64
}

// verdict runs the filter over a call. The VM of x/net/bpf loads big-endian, so
// each 32-bit word is laid out that way.
func verdict(t *testing.T, vm *bpf.VM, c call) uint32 {
	t.Helper()
	data := make([]byte, 64)
	binary.BigEndian.PutUint32(data[offsetNr:], c.nr)
	binary.BigEndian.PutUint32(data[offsetArch:], c.arch)
	for i, arg := range c.args {
		binary.BigEndian.PutUint32(data[offsetArg0+8*i:], uint32(arg))
		binary.BigEndian.PutUint32(data[offsetArg0+8*i+4:], uint32(arg>>32))
	}
	n, err := vm.Run(data)
	if err != nil {
		t.Fatalf("running the filter: %v", err)
	}
	return uint32(n)
}

// TestFilterKnowsTheCallsOfEachArchitecture has all names that are not those of a
// call: a call that has another name elsewhere would be refused there, and
// nothing starts without fstatat.
func TestFilterKnowsTheCallsOfEachArchitecture(t *testing.T) {
	for _, tt := range []struct {
		info    *arch.Info
		unknown []string
	}{
		{arch.X86_64, []string{"fstatat"}},
		{arch.AARCH64, []string{
			// arm64 came after what replaces these.
			"access", "alarm", "arch_prctl", "chmod", "chown", "creat", "dup2", "epoll_create", "epoll_wait", "eventfd", "fork", "futimesat",
			"getdents", "getpgrp", "lchown", "link", "lstat", "mkdir", "mknod", "newfstatat", "open", "pause", "pipe", "poll", "readlink",
			"rename", "rmdir", "select", "signalfd", "stat", "symlink", "time", "unlink", "utime", "utimes", "vfork",
			// These are of x86.
			"ioperm", "iopl", "modify_ldt",
		}},
	} {
		t.Run(tt.info.Name, func(t *testing.T) {
			var unknown []string
			for _, name := range slices.Concat(allowedCalls, refusedCalls, []string{"socket", "socketpair", "setsockopt", "clone", "ioctl"}) {
				if _, ok := tt.info.SyscallNames[name]; !ok {
					unknown = append(unknown, name)
				}
			}
			slices.Sort(unknown)
			slices.Sort(tt.unknown)
			if !slices.Equal(unknown, tt.unknown) {
				t.Errorf("unknown are %q, want %q", unknown, tt.unknown)
			}
		})
	}
}

func filterVM(t *testing.T) (*bpf.VM, *arch.Info) {
	t.Helper()
	info, err := nativeArch()
	if err != nil {
		t.Fatal(err)
	}
	program, err := seccompInstructions()
	if err != nil {
		t.Fatal(err)
	}
	vm, err := bpf.NewVM(program)
	if err != nil {
		t.Fatal(err)
	}
	return vm, info
}

func errnoVerdict(e unix.Errno) uint32 { return unix.SECCOMP_RET_ERRNO | uint32(e) }

func TestFilterAllowsOnlyWhatIsListed(t *testing.T) {
	vm, info := filterVM(t)
	checked := []string{"socket", "socketpair", "setsockopt", "clone", "ioctl"}
	for nr := range uint32(600) {
		name := info.SyscallNumbers[int(nr)]
		if slices.Contains(checked, name) {
			continue
		}
		want := errnoVerdict(unix.ENOSYS)
		switch {
		case slices.Contains(allowedCalls, name):
			want = unix.SECCOMP_RET_ALLOW
		case slices.Contains(refusedCalls, name):
			want = errnoVerdict(unix.EPERM)
		}
		// Arguments that are numbers of allowed calls must not matter.
		for _, arg := range []uint64{0, 1, 40, ^uint64(0)} {
			c := call{arch: uint32(info.ID), nr: nr, args: [6]uint64{arg, arg, arg, arg, arg, arg}}
			if got := verdict(t, vm, c); got != want {
				t.Errorf("call %d (%s) with arguments %#x: verdict %#x, want %#x", nr, name, arg, got, want)
			}
		}
	}
}

func TestFilterKillsForeignArchitectures(t *testing.T) {
	vm, info := filterVM(t)
	for _, foreign := range []*arch.Info{arch.I386, arch.ARM, arch.X86_64, arch.AARCH64} {
		if foreign.ID == info.ID {
			continue
		}
		for nr := range uint32(600) {
			if got := verdict(t, vm, call{arch: uint32(foreign.ID), nr: nr}); got != unix.SECCOMP_RET_KILL_PROCESS {
				t.Fatalf("call %d of %s: verdict %#x, want a kill", nr, foreign.Name, got)
			}
		}
	}
	if info.ID != arch.X86_64.ID {
		return
	}
	for nr := range uint32(600) {
		c := call{arch: uint32(info.ID), nr: nr | uint32(arch.X32.SeccompMask)}
		if got := verdict(t, vm, c); got != unix.SECCOMP_RET_KILL_PROCESS {
			t.Fatalf("call %d of x32: verdict %#x, want a kill", nr, got)
		}
	}
}

func TestFilterChecksArguments(t *testing.T) {
	vm, info := filterVM(t)
	for family := range uint64(64) {
		want := errnoVerdict(unix.EAFNOSUPPORT)
		if family == unix.AF_UNIX {
			want = unix.SECCOMP_RET_ALLOW
		}
		for _, name := range []string{"socket", "socketpair"} {
			for _, high := range []uint64{0, 1 << 32, 40 << 32} {
				c := call{arch: uint32(info.ID), nr: uint32(info.SyscallNames[name]), args: [6]uint64{family | high, 1}}
				if got := verdict(t, vm, c); got != want {
					t.Errorf("%s(%#x): verdict %#x, want %#x", name, family|high, got, want)
				}
			}
		}
	}
	for _, flag := range []uint64{
		unix.CLONE_NEWUSER, unix.CLONE_NEWNS, unix.CLONE_NEWPID, unix.CLONE_NEWNET, unix.CLONE_NEWIPC,
		unix.CLONE_NEWUTS, unix.CLONE_NEWCGROUP,
	} {
		c := call{arch: uint32(info.ID), nr: uint32(info.SyscallNames["clone"]), args: [6]uint64{flag | 17}}
		if got := verdict(t, vm, c); got != errnoVerdict(unix.EPERM) {
			t.Errorf("clone(%#x): verdict %#x, want EPERM", flag, got)
		}
	}
	thread := call{arch: uint32(info.ID), nr: uint32(info.SyscallNames["clone"]), args: [6]uint64{0x3d0f00}}
	if got := verdict(t, vm, thread); got != unix.SECCOMP_RET_ALLOW {
		t.Errorf("clone for a thread: verdict %#x, want allow", got)
	}
	for option, want := range map[[2]uint64]uint32{
		{unix.SOL_SOCKET, unix.SO_SNDBUF}:                 errnoVerdict(0),
		{unix.SOL_SOCKET | 1<<32, unix.SO_SNDBUF | 1<<32}: errnoVerdict(0),
		{unix.SOL_SOCKET, unix.SO_RCVTIMEO}:               unix.SECCOMP_RET_ALLOW,
		{unix.SOL_TCP, unix.SO_SNDBUF}:                    unix.SECCOMP_RET_ALLOW,
	} {
		c := call{arch: uint32(info.ID), nr: uint32(info.SyscallNames["setsockopt"]), args: [6]uint64{3, option[0], option[1]}}
		if got := verdict(t, vm, c); got != want {
			t.Errorf("setsockopt(%#x): verdict %#x, want %#x", option, got, want)
		}
	}
	for request, want := range map[uint64]uint32{
		unix.TIOCSTI:         errnoVerdict(unix.ENOTTY),
		unix.TIOCSTI | 1<<32: errnoVerdict(unix.ENOTTY),
		unix.TIOCLINUX:       errnoVerdict(unix.ENOTTY),
		unix.TIOCGWINSZ:      unix.SECCOMP_RET_ALLOW,
		1:                    errnoVerdict(unix.ENOTTY),
		unix.FICLONE:         errnoVerdict(unix.ENOTTY),
		unix.FS_IOC_SETFLAGS: errnoVerdict(unix.ENOTTY),
		unix.TUNSETIFF:       errnoVerdict(unix.ENOTTY),
	} {
		c := call{arch: uint32(info.ID), nr: uint32(info.SyscallNames["ioctl"]), args: [6]uint64{1, request}}
		if got := verdict(t, vm, c); got != want {
			t.Errorf("ioctl(%#x): verdict %#x, want %#x", request, got, want)
		}
	}
}

func TestFilterNamesExist(t *testing.T) {
	for _, name := range slices.Concat(allowedCalls, refusedCalls) {
		_, onAMD64 := arch.X86_64.SyscallNames[name]
		_, onARM64 := arch.AARCH64.SyscallNames[name]
		if !onAMD64 && !onARM64 {
			t.Errorf("%q is a call of neither amd64 nor arm64", name)
		}
		if slices.Contains(allowedCalls, name) && slices.Contains(refusedCalls, name) {
			t.Errorf("%q is both allowed and refused", name)
		}
	}
}
