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
	"io/fs"
	"strings"
	"testing"
)

func TestFailedStartNamesReasonAndCure(t *testing.T) {
	const denied = "bwrap: setting up uid map: Permission denied"
	for _, tt := range []struct {
		name, complaint string
		files           map[string]string
		want            string
	}{
		{"user namespaces off", "bwrap: No permissions to create new namespace", map[string]string{"/proc/sys/user/max_user_namespaces": "0\n"}, "sysctl user.max_user_namespaces"},
		{"Debian's switch", "bwrap: No permissions to create a new namespace", map[string]string{"/proc/sys/kernel/unprivileged_userns_clone": "0\n"}, "kernel.unprivileged_userns_clone=1"},
		{"Ubuntu", denied, map[string]string{"/proc/sys/kernel/apparmor_restrict_unprivileged_userns": "1\n"}, "apparmor_restrict_unprivileged_userns=0"},
		{"Docker", "bwrap: Creating new namespace failed: Operation not permitted", map[string]string{"/.dockerenv": ""}, "--security-opt seccomp=unconfined"},
		{"Docker's /proc", "bwrap: Can't mount proc on /newroot/proc: Operation not permitted", map[string]string{"/.dockerenv": ""}, "systempaths=unconfined"},
		{"a stranger", denied, nil, "bwrap --unshare-user"},
		{"no matter of rights", "ImportError: no module", nil, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			host := hostFacts(func(path string) ([]byte, error) {
				if text, ok := tt.files[path]; ok {
					return []byte(text), nil
				}
				return nil, fs.ErrNotExist
			})
			got := cureFor(tt.complaint, host)
			if !strings.Contains(got, tt.want) || (tt.want == "") != (got == "") {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
	err := explain(fmt.Errorf("x: %w", &startError{complaint: denied, err: errors.New("ended")}))
	if !strings.Contains(err.Error(), denied) || !strings.Contains(err.Error(), "use sandbox e2b") {
		t.Errorf("explained: %v", err)
	}
}
