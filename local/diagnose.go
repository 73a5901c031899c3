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
	"errors"
	"fmt"
	"os"
	"strings"
)

// explain adds to a sandbox's failed start what is known of the reason and what
// helps: the messages of bubblewrap name neither.
func explain(err error) error {
	var failed *startError
	if !errors.As(err, &failed) {
		return err
	}
	if cure := cureFor(failed.complaint, hostFacts(os.ReadFile)); cure != "" {
		return fmt.Errorf("%w: %s", err, cure)
	}
	return err
}

// facts are the settings of the host that forbid sandboxes.
type facts struct {
	noUserNamespaces bool // max_user_namespaces or unprivileged_userns_clone is 0
	appArmor         bool // apparmor_restrict_unprivileged_userns is 1
	container        bool
}

// hostFacts looks the settings up.
func hostFacts(read func(string) ([]byte, error)) facts {
	value := func(path string) string {
		text, err := read(path)
		if err != nil {
			return "" // a kernel without the setting
		}
		return strings.TrimSpace(string(text))
	}
	exists := func(path string) bool {
		_, err := read(path)
		return err == nil
	}
	return facts{
		noUserNamespaces: value("/proc/sys/user/max_user_namespaces") == "0" ||
			value("/proc/sys/kernel/unprivileged_userns_clone") == "0",
		appArmor: value("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == "1",
		container: exists("/.dockerenv") || exists("/run/.containerenv") ||
			strings.Contains(value("/proc/1/environ"), "container="),
	}
}

// cureFor says why bubblewrap complains so on such a host, and what to do.
func cureFor(complaint string, host facts) string {
	has := func(words ...string) bool {
		for _, word := range words {
			if strings.Contains(complaint, word) {
				return true
			}
		}
		return false
	}
	switch {
	case has("mount proc"):
		return "the container hides parts of /proc: run it with --security-opt systempaths=unconfined, or use sandbox e2b"
	case !has("namespace", "uid map", "setting up", "Operation not permitted", "Permission denied"):
		return ""
	case host.noUserNamespaces:
		return "user namespaces are off: sysctl user.max_user_namespaces=10000 (on older Debian also kernel.unprivileged_userns_clone=1), or use sandbox e2b"
	case host.appArmor:
		return "Ubuntu's AppArmor forbids user namespaces to bwrap: install its profile (apt install apparmor-profiles, then " +
			"ln -s /usr/share/apparmor/extra-profiles/bwrap-userns-restrict /etc/apparmor.d/ and reload), or " +
			"sysctl kernel.apparmor_restrict_unprivileged_userns=0, or use sandbox e2b"
	case host.container:
		return "the container's seccomp profile forbids user namespaces: run it with --security-opt seccomp=unconfined " +
			"--security-opt apparmor=unconfined --security-opt systempaths=unconfined, or use sandbox e2b"
	default:
		return "the kernel refuses what bubblewrap needs; see whether `bwrap --unshare-user --ro-bind / / true` works, or use sandbox e2b"
	}
}
