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
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// inside is Python that the wall's tests share: attempt calls the kernel past
// every library and tells the error's name, "0" when there was none.
const inside = `
import ctypes, errno, os, socket
_libc = ctypes.CDLL(None, use_errno=True)
def attempt(number, *args):
    ctypes.set_errno(0)
    result = _libc.syscall(ctypes.c_long(number), *[ctypes.c_long(a) for a in args])
    return errno.errorcode[ctypes.get_errno()] if result == -1 else "0"
def reach(f):
    try:
        return f()
    except OSError as e:
        return errno.errorcode.get(e.errno, str(e.errno))
None
`

// TestWallRefusesDangerousCalls asks the kernel for each directly. ENOSYS and
// EPERM come from the filter: the arguments would get other errors from the kernel.
func TestWallRefusesDangerousCalls(t *testing.T) {
	c := newClient(t, newServer(t, Config{}))
	b := c.create(nil)
	c.want(b, inside, "")
	for _, tt := range []struct {
		name   string
		number int
		args   string
		want   string
	}{
		{"mounting", unix.SYS_MOUNT, "0, 0, 0, 0, 0", "EPERM"},
		{"new mount API", unix.SYS_FSOPEN, "0, 0", "EPERM"},
		{"unmounting", unix.SYS_UMOUNT2, "0, 0", "EPERM"},
		{"pivot_root", unix.SYS_PIVOT_ROOT, "0, 0", "EPERM"},
		{"a user namespace by unshare", unix.SYS_UNSHARE, fmt.Sprint(unix.CLONE_NEWUSER), "EPERM"},
		{"a user namespace by clone", unix.SYS_CLONE, fmt.Sprint(unix.CLONE_NEWUSER | 17), "EPERM"},
		{"a network namespace by clone", unix.SYS_CLONE, fmt.Sprint(unix.CLONE_NEWNET | 17), "EPERM"},
		{"clone3, whose flags no filter sees", unix.SYS_CLONE3, "0, 0", "ENOSYS"},
		{"joining a namespace", unix.SYS_SETNS, "0, 0", "EPERM"},
		{"ptrace", unix.SYS_PTRACE, "0, 0, 0, 0", "EPERM"},
		{"another process's memory", unix.SYS_PROCESS_VM_WRITEV, "1, 0, 0, 0, 0, 0", "EPERM"},
		{"bpf", unix.SYS_BPF, "0, 0, 0", "EPERM"},
		{"keyctl", unix.SYS_KEYCTL, "0, 0, 0, 0, 0", "EPERM"},
		{"add_key", unix.SYS_ADD_KEY, "0, 0, 0, 0, 0", "EPERM"},
		{"io_uring", unix.SYS_IO_URING_SETUP, "1, 0", "EPERM"},
		{"perf_event_open", unix.SYS_PERF_EVENT_OPEN, "0, 0, 0, 0, 0", "EPERM"},
		{"userfaultfd", unix.SYS_USERFAULTFD, "0", "EPERM"},
		{"the kernel's log", unix.SYS_SYSLOG, "3, 0, 0", "EPERM"},
		{"loading a module", unix.SYS_FINIT_MODULE, "0, 0, 0", "EPERM"},
		{"kexec", unix.SYS_KEXEC_LOAD, "0, 0, 0, 0", "EPERM"},
		{"opening by handle", unix.SYS_OPEN_BY_HANDLE_AT, "0, 0, 0", "EPERM"},
		{"memory without an owner", unix.SYS_MEMFD_CREATE, "0, 0", "ENOSYS"},
		{"System V shared memory", unix.SYS_SHMGET, "0, 4096, 512", "ENOSYS"},
		{"a message queue", unix.SYS_MQ_OPEN, "0, 0, 0, 0", "ENOSYS"},
		{"watching files", unix.SYS_INOTIFY_INIT1, "0", "ENOSYS"},
		{"a call that no kernel has", 9999, "0", "ENOSYS"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c.with(t).want(b, fmt.Sprintf("attempt(%d, %s)", tt.number, tt.args), tt.want)
		})
	}
}

// TestWallHidesTheHost looks at everything through Python's own eyes.
func TestWallHidesTheHost(t *testing.T) {
	t.Setenv("GATEWAY_SECRET", "do not tell")
	// A descriptor as a careless parent leaves it to the gateway: not close-on-exec.
	secret, err := os.Open("/etc/hostname")
	if err != nil {
		t.Fatal(err)
	}
	defer secret.Close()
	leak, err := unix.Dup(int(secret.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(leak)

	c := newClient(t, newServer(t, Config{}))
	b := c.create(nil)
	c.want(b, inside, "")
	for _, tt := range []struct{ name, code, want string }{
		{"Internet sockets", "reach(lambda: socket.socket(socket.AF_INET))", "EAFNOSUPPORT"},
		{"IPv6 sockets", "reach(lambda: socket.socket(socket.AF_INET6))", "EAFNOSUPPORT"},
		{"netlink", "reach(lambda: socket.socket(16, socket.SOCK_RAW))", "EAFNOSUPPORT"},
		{"packet sockets", "reach(lambda: socket.socket(17, socket.SOCK_RAW))", "EAFNOSUPPORT"},
		{"the kernel's crypto", "reach(lambda: socket.socket(38, socket.SOCK_SEQPACKET))", "EAFNOSUPPORT"},
		{"the hypervisor", "reach(lambda: socket.socket(40, socket.SOCK_STREAM))", "EAFNOSUPPORT"},
		{"abstract sockets of the host", "[l for l in open('/proc/net/unix')][1:]", "[]"},
		{"network devices", "[l.split(':')[0].strip() for l in open('/proc/net/dev')][2:]", "['lo']"},
		{"user", "os.getuid(), os.getgid(), os.getgroups()", "(1000, 1000, [])"},
		{"capabilities", "{l.split()[1] for l in open('/proc/self/status') if l.startswith('Cap')}", "{'0000000000000000'}"},
		{"no new privileges", "[l.split()[1] for l in open('/proc/self/status') if l.startswith('NoNewPrivs')]", "['1']"},
		{"process limit", "__import__('resource').getrlimit(__import__('resource').RLIMIT_NPROC)", "(64, 64)"},
		{"core files", "__import__('resource').getrlimit(__import__('resource').RLIMIT_CORE)", "(0, 0)"},
		{"passwords", "reach(lambda: open('/etc/shadow'))", "ENOENT"},
		{"users", "sorted(l.split(':')[0] for l in open('/etc/passwd'))", "['nobody', 'root', 'user']"},
		{"home directories", "os.listdir('/home'), reach(lambda: os.listdir('/root'))", "(['user'], 'ENOENT')"},
		{"/sys", "reach(lambda: os.listdir('/sys'))", "ENOENT"},
		{"the root", "sorted(set(os.listdir('/')) - {'bin', 'lib', 'lib32', 'lib64', 'libx32', 'sbin'})", "['dev', 'etc', 'home', 'proc', 'run', 'tmp', 'usr', 'var']"},
		{"devices", "sorted(set(os.listdir('/dev')) - {'core'})", "['fd', 'full', 'null', 'ptmx', 'pts', 'random', 'shm', 'stderr', 'stdin', 'stdout', 'tty', 'urandom', 'zero']"},
		{"writing to the system", "reach(lambda: open('/usr/x', 'w')), reach(lambda: open('/x', 'w')), reach(lambda: open('/etc/x', 'w')), reach(lambda: open('/dev/x', 'w'))", "('EROFS', 'EROFS', 'EROFS', 'EROFS')"},
		{"writing to its own", "[open(p + '/x', 'w').write('ok') for p in ('/home/user', '/tmp', '/dev/shm')]", "[2, 2, 2]"},
		{"the size of its own", "{os.statvfs(p).f_blocks * os.statvfs(p).f_frsize >> 20 for p in ('/home/user', '/tmp', '/dev/shm')}", "{256}"},
		{"processes", "len([p for p in os.listdir('/proc') if p.isdigit()])", "3"},
		{"the environment", "[k for k in os.environ if 'SECRET' in k or k.startswith('GO')]", "[]"},
		{"process 1's environment", "reach(lambda: open('/proc/1/environ'))", "ENOENT"},
		{"process 1's command line", "reach(lambda: open('/proc/1/cmdline'))", "ENOENT"},
		{"process 1's memory", "reach(lambda: open('/proc/1/mem'))", "ENOENT"},
		{"process 1's descriptors", "reach(lambda: os.listdir('/proc/1/fd'))", "ENOENT"},
		{"who goes first when memory is short", "open('/proc/self/oom_score_adj').read().strip(), reach(lambda: open('/proc/self/oom_score_adj', 'w'))", "('1000', 'EROFS')"},
		{"settings of the kernel", "reach(lambda: open('/proc/sys/kernel/ns_last_pid', 'w'))", "EROFS"},
		{"pending signals", "__import__('resource').getrlimit(__import__('resource').RLIMIT_SIGPENDING)", "(1024, 1024)"},
		// libffi 3.5 keeps its own file open.
		{"inherited descriptors", "[os.readlink('/proc/self/fd/' + n) for n in os.listdir('/proc/self/fd') if os.path.exists('/proc/self/fd/' + n) and os.readlink('/proc/self/fd/' + n)[0] == '/' and not os.readlink('/proc/self/fd/' + n).startswith(('/dev/null', '/proc/', '/usr/lib'))]", "[]"},
		{"descriptors of the others", "[reach(lambda: os.listdir('/proc/%d/fd' % p)) for p in (2,)]", "['EACCES']"},
		{"the driver's memory", "reach(lambda: open('/proc/2/mem'))", "EACCES"},
		{"file systems of the host", "{l.split()[2] for l in open('/proc/mounts') if l.split()[3].split(',')[0] == 'rw'} - {'devpts', 'devtmpfs', 'proc', 'tmpfs'}", "set()"},
		{"priority", "os.nice(0), reach(lambda: os.nice(-1))", "(5, 'EPERM')"},
		{"the host's name", "socket.gethostname()", "sandbox"},
		{"no terminal", "reach(lambda: open('/dev/tty'))", "ENXIO"},
	} {
		t.Run(tt.name, func(t *testing.T) { c.with(t).want(b, "print(("+tt.code+"))", tt.want) })
	}
}

// TestWallKillsForeignSystemCalls enters the kernel by the table of 32-bit
// programs, where the filter's numbers mean other calls.
func TestWallKillsForeignSystemCalls(t *testing.T) {
	info, err := nativeArch()
	if err != nil {
		t.Fatal(err)
	}
	if info.Name != "x86_64" {
		t.Skip("only x86 has another table in the same instruction set")
	}
	c := newClient(t, newServer(t, Config{}))
	b := c.create(nil)
	for name, code := range map[string]string{
		"i386 getpid by int 0x80": `b"\xb8\x14\0\0\0\xcd\x80\xc3"`,
		"x32 getpid by syscall":   `b"\xb8\x27\0\0\x40\x0f\x05\xc3"`,
	} {
		t.Run(name, func(t *testing.T) {
			o := c.with(t).run(b, `
import ctypes, mmap
page = mmap.mmap(-1, 4096, flags=mmap.MAP_PRIVATE, prot=7)
page.write(`+code+`)
print("there", flush=True)
ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))()
print("survived")`)
			if o.Error != "ContextRestarting" || o.Stdout != "there\n" {
				t.Errorf("got %v, want a dead kernel", o)
			}
		})
	}
}

// TestWallHoldsForAnOrdinaryUser runs the tests of the wall again without root's
// rights, when they have been run with them.
func TestWallHoldsForAnOrdinaryUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("the tests run as an ordinary user already")
	}
	const somebody = 23456
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, "/proc/self/exe", "-test.v", "-test.run", "^(TestWall|TestSandboxRuns|TestNothingSurvives)")
	cmd.Dir = "/"
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: somebody, Gid: somebody}}
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, out.Bytes())
	}
	for _, name := range []string{"TestWallRefusesDangerousCalls", "TestWallHidesTheHost", "TestSandboxRunsCodeAndKeepsState", "TestNothingSurvivesTheGateway"} {
		if !strings.Contains(out.String(), "--- PASS: "+name) {
			t.Errorf("%s did not run:\n%s", name, out.Bytes())
		}
	}
}

func TestEachSandboxOfRootHasItsOwnUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give users away")
	}
	s := newServer(t, Config{})
	c := newClient(t, s)
	users := map[int]bool{}
	for range 2 {
		sb := s.find(c.create(nil).ID)
		for _, pid := range append(descendants(sb.process.initPID), sb.process.initPID, sb.process.cmd.Process.Pid) {
			var st unix.Stat_t
			if err := unix.Stat(fmt.Sprintf("/proc/%d/task/%d/status", pid, pid), &st); err != nil {
				t.Fatal(err)
			}
			status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
			if err != nil {
				t.Fatal(err)
			}
			want := fmt.Sprintf("Uid:\t%[1]d\t%[1]d\t%[1]d\t%[1]d\n", sb.process.uid)
			if !strings.Contains(string(status), want) || !strings.Contains(string(status), "Groups:\t \n") {
				t.Errorf("process %d is not %q alone:\n%s", pid, want, status)
			}
		}
		if sb.process.uid < uidRanges[1][0] || users[sb.process.uid] {
			t.Errorf("user %d", sb.process.uid)
		}
		users[sb.process.uid] = true
	}
}
