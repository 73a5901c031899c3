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
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// The descriptors that bubblewrap inherits, in the order of exec.Cmd.ExtraFiles.
const (
	fdArgs = 3 + iota
	fdSeccomp
	fdInfo
	fdBlock // bubblewrap goes on when it is closed
	fdPayload
	fdCommands  // the driver's two; process 1 closes all but the standard ones,
	fdEvents    // whose entries in /proc foreign code can open
	fdFirstFile // one for each of sandboxFiles, then the seed's
)

// sandboxFiles are the files of /etc that a sandbox gets instead of the host's.
var sandboxFiles = []struct{ path, text string }{
	{"/etc/passwd", "root:x:0:0:root:/root:/usr/sbin/nologin\nuser:x:1000:1000::" + sandboxHome + ":/bin/bash\nnobody:x:65534:65534::/:/usr/sbin/nologin\n"},
	{"/etc/group", "root:x:0:\nuser:x:1000:\nnogroup:x:65534:\n"},
	{"/etc/hosts", "127.0.0.1 localhost sandbox\n::1 localhost\n"},
	{"/etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files\n"},
}

// hostFiles are what libraries read of the host's /etc; none is private. Debian's
// matplotlib does not start without its matplotlibrc.
var hostFiles = []string{
	"/etc/alternatives", "/etc/fonts", "/etc/matplotlibrc", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d",
	"/etc/localtime", "/etc/timezone", "/etc/ssl/certs", "/etc/ssl/openssl.cnf", "/etc/pki/tls/certs",
	"/etc/ca-certificates", "/etc/mime.types", "/etc/os-release", "/etc/locale.alias", "/etc/bash.bashrc",
	"/etc/ImageMagick-6", "/etc/magic", "/etc/papersize",
}

// bwrapArgs returns bubblewrap's arguments, all but the command. They are handed
// over in a file: the command line of process 1 can be read inside.
func bwrapArgs(py *interpreter, l limits) []string {
	var a []string
	add := func(args ...string) { a = append(a, args...) }
	tmpfs := func(mode, path string, size int64) {
		add("--perms", mode, "--size", strconv.FormatInt(size, 10), "--tmpfs", path)
	}

	// Named one by one: --unshare-all goes on without a user namespace where there
	// is none to be had, and --disable-userns then refuses.
	add("--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try")
	add("--disable-userns", "--uid", "1000", "--gid", "1000", "--hostname", "sandbox")
	add("--die-with-parent", "--new-session", "--seccomp", strconv.Itoa(fdSeccomp), "--info-fd", strconv.Itoa(fdInfo), "--block-fd", strconv.Itoa(fdBlock))

	add("--clearenv")
	for _, kv := range environment(py) {
		add("--setenv", kv[0], kv[1])
	}

	add("--ro-bind", "/usr", "/usr")
	add(systemLinks()...)
	add("--perms", "0755", "--dir", "/etc")
	for i, file := range sandboxFiles {
		add("--perms", "0444", "--file", strconv.Itoa(fdFirstFile+i), file.path)
	}
	for _, path := range hostFiles {
		add("--ro-bind-try", path, path)
	}

	// Process 1 is bubblewrap, with the rights of the code: who could write to its
	// memory could have it outlive the gateway. The rest is for reading, so that the
	// code cannot undo that it goes first when the machine runs out of memory.
	add("--proc", "/proc", "--size", "4096", "--tmpfs", "/proc/1", "--remount-ro", "/proc/1", "--remount-ro", "/proc", "--dev", "/dev")
	tmpfs("1777", "/dev/shm", l.disk)
	add("--remount-ro", "/dev")
	add("--perms", "0755", "--dir", "/home", "--perms", "0755", "--dir", "/var", "--perms", "0755", "--dir", "/run")
	if !py.Virtual {
		add("--symlink", py.Executable, linksDir+"/python", "--symlink", py.Executable, linksDir+"/python3")
	}
	tmpfs("0755", sandboxHome, l.disk)
	tmpfs("1777", "/tmp", l.disk)
	binds := py.binds()
	for _, path := range binds {
		add("--ro-bind", path, path)
	}
	if !slices.ContainsFunc(binds, func(path string) bool { return strings.HasPrefix(path, "/var/tmp/") }) {
		add("--symlink", "/tmp", "/var/tmp")
	}
	add("--remount-ro", "/", "--chdir", sandboxHome)
	return a
}

// seedArgs returns the arguments for a file that the sandbox begins with; they
// follow the others.
func seedArgs(seed *seedFile) []byte {
	fd := strconv.Itoa(fdFirstFile + len(sandboxFiles))
	return joinArgs([]string{"--perms", "0755", "--dir", filepath.Dir(seed.path), "--perms", "0644", "--file", fd, seed.path})
}

// joinArgs puts arguments into the form that --args reads.
func joinArgs(args []string) []byte { return []byte(strings.Join(args, "\x00") + "\x00") }

// systemLinks mirrors how the host has /bin, /lib and their like: as links into
// /usr, or as directories of their own.
func systemLinks() []string {
	var a []string
	for _, path := range systemDirs {
		if path == "/usr" {
			continue
		}
		info, err := os.Lstat(path)
		if err != nil {
			continue
		}
		target, err := os.Readlink(path)
		if info.Mode()&os.ModeSymlink != 0 && err == nil {
			a = append(a, "--symlink", target, path)
			continue
		}
		a = append(a, "--ro-bind", path, path)
	}
	return a
}

// linksDir has python and python3, which lead to the sandbox's interpreter: many a
// machine has no python, and its python3 may be another one. A virtual environment
// has both, and Python would not know itself in it by a link from elsewhere.
const linksDir = "/run/python"

// environment is the whole environment inside.
func environment(py *interpreter) [][2]string {
	path := "/usr/local/bin:/usr/bin:/bin"
	if dir := filepath.Dir(py.Executable); !strings.Contains(":"+path+":", ":"+dir+":") {
		path = dir + ":" + path
	}
	if !py.Virtual {
		path = linksDir + ":" + path
	}
	env := [][2]string{
		{"PATH", path},
		{"HOME", sandboxHome},
		{"USER", "user"},
		{"LOGNAME", "user"},
		{"SHELL", "/bin/bash"},
		{"LANG", "C.UTF-8"},
		{"TERM", "dumb"},
		{"MPLCONFIGDIR", fontsDir},
		{"XDG_CACHE_HOME", "/tmp/.cache"},
	}
	// Each thread of these takes address space and one of the sandbox's processes.
	for _, name := range []string{"OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS"} {
		env = append(env, [2]string{name, "1"})
	}
	if py.Virtual {
		env = append(env, [2]string{"VIRTUAL_ENV", filepath.Dir(filepath.Dir(py.Executable))})
	}
	return env
}
