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

package codeinterpreter

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"

	"github.com/caddy-code-interpreter/caddy-code-interpreter/session"
)

// command runs a command with arguments and returns what it wrote.
func command(t *testing.T, cmd *cobra.Command, stdin string, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	var out, errs bytes.Buffer
	cmd.SetIn(strings.NewReader(stdin))
	cmd.SetOut(&out)
	cmd.SetErr(&errs)
	cmd.SetArgs(args)
	err = cmd.ExecuteContext(t.Context())
	return out.String(), errs.String(), err
}

// exitCode is the status that Caddy ends a command with. Caddy keeps the type of
// the error that carries it to itself.
func exitCode(err error) int {
	if err == nil {
		return 0
	}
	if v := reflect.ValueOf(err); v.Kind() == reflect.Pointer && v.Elem().Kind() == reflect.Struct {
		if code := v.Elem().FieldByName("ExitCode"); code.IsValid() {
			return int(code.Int())
		}
	}
	return 1
}

// configFile writes a configuration with a handler that uses the server.
func configFile(t *testing.T, f *fakeE2B, sandbox map[string]any) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "caddy.json")
	handle := `[{"handler": "code_interpreter", ` + f.config(t, sandbox, nil)[1:] + `]`
	writeFile(t, name, `{"apps": {"http": {"servers": {"a": {"routes": [{"handle": [{"handler": "subroute", "routes": [{"handle": `+handle+`}]}]}]}}}}}`)
	return name
}

func TestRunPrintsWhatTheProgramPrints(t *testing.T) {
	f := newFakeE2B(t)
	stdout, _, err := command(t, runCommand(), "print('ok')", "-", "--config", configFile(t, f, nil))
	if err != nil || stdout != "ok\n" {
		t.Errorf("it prints %q: %v", stdout, err)
	}
	if created, deleted := <-f.created, <-f.deleted; created != deleted {
		t.Errorf("%s was created, %s deleted", created, deleted)
	}
}

func TestRunSaysByItsStatusWhatBecameOfTheProgram(t *testing.T) {
	f := newFakeE2B(t)
	file := filepath.Join(t.TempDir(), "program.py")
	writeFile(t, file, "1/0")
	f.output = []string{
		`{"type": "stderr", "text": "so far\n", "timestamp": "0"}`,
		`{"type": "result", "text": "41", "is_main_result": true}`,
		`{"type": "error", "name": "ZeroDivisionError", "value": "division by zero", "traceback": "-----ZeroDivisionError     Traceback (most recent call last)Cell In[1], line 1\n----> 1 1/0\nZeroDivisionError: division by zero"}`,
	}
	stdout, stderr, err := command(t, runCommand(), "", file, "--config", configFile(t, f, nil))
	if exitCode(err) != exitFailed || stdout != "41\n" || stderr != "so far\nTraceback (most recent call last):\nCell In[1], line 1\n----> 1 1/0\nZeroDivisionError: division by zero\n" {
		t.Errorf("a program that raises: %v, prints %q and %q", err, stdout, stderr)
	}
	f.refuse(http.StatusUnauthorized)
	for what, args := range map[string][]string{
		"no sandbox": {file, "--config", configFile(t, f, nil)},
		"no program": {file + ".missing", "--config", configFile(t, f, nil)},
		"no handler": {file, "--config", emptyConfig(t)},
		"no config":  {file, "--config", file + ".missing"},
		"nothing":    {},
		"two":        {file, file},
		"a flag":     {file, "--confg", file},
	} {
		if _, _, err := command(t, runCommand(), "", args...); exitCode(err) != exitNotRun {
			t.Errorf("%s: %v, want status %d", what, err, exitNotRun)
		}
	}
}

func emptyConfig(t *testing.T) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "empty.json")
	writeFile(t, name, "{}")
	return name
}

func TestCommandsReadCaddyfiles(t *testing.T) {
	f := newFakeE2B(t)
	t.Setenv("THE_KEY", theKey)
	name := filepath.Join(t.TempDir(), "Caddyfile")
	writeFile(t, name, fmt.Sprintf(`http://one.example {
	code_interpreter {
		sandbox e2b {
			api_key {env.THE_KEY}
			api_url %s
			sandbox_url %s
		}
	}
	reverse_proxy 127.0.0.1:1
}
`, f.URL, f.URL))
	if stdout, _, err := command(t, runCommand(), "print('ok')", "-", "--config", name); err != nil || stdout != "ok\n" {
		t.Errorf("it prints %q: %v", stdout, err)
	}
	<-f.deleted
}

func TestDoctorFindsNothingWrong(t *testing.T) {
	f := newFakeE2B(t)
	f.answers = func(code string) []string {
		switch {
		case strings.Contains(code, "sys.version"):
			return []string{`{"type": "stdout", "text": "Python 3.13.1\n", "timestamp": "0"}`}
		case strings.Contains(code, "x + 1"):
			return []string{`{"type": "stdout", "text": "42\n", "timestamp": "0"}`}
		default:
			return []string{`{"type": "stdout", "text": "pandas\n", "timestamp": "0"}`}
		}
	}
	stdout, _, err := command(t, doctorCommand(), "", "--config", configFile(t, f, map[string]any{"api_key": theKey}))
	if err != nil {
		t.Errorf("%v after\n%s", err, stdout)
	}
	for _, want := range []string{"ok    create", "Python 3.13.1", "ok    keep variables", "warn  modules", "not there: pandas", "ok    find again", "ok    delete"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("%q is not in\n%s", want, stdout)
		}
	}
	noSecrets(t, stdout)
}

func TestDoctorTriesToPauseWhereThatIsConfigured(t *testing.T) {
	for _, pauses := range []bool{true, false} {
		f := newFakeE2B(t)
		f.pauses = pauses
		f.answers = func(code string) []string {
			text := map[bool]string{true: "42", false: "Python 3"}[strings.Contains(code, "x + 1")]
			return []string{`{"type": "stdout", "text": "` + text + `\n", "timestamp": "0"}`}
		}
		name := filepath.Join(t.TempDir(), "Caddyfile")
		writeFile(t, name, fmt.Sprintf("http://a.example {\n\tcode_interpreter {\n\t\tsandbox e2b {\n\t\t\tapi_key k\n\t\t\tapi_url %s\n"+
			"\t\t\tsandbox_url %s\n\t\t}\n\t\tsessions {\n\t\t\ton_idle pause\n\t\t}\n\t}\n}\n", f.URL, f.URL))
		stdout, _, err := command(t, doctorCommand(), "", "--config", name)
		want := []string{"ok    pause", "ok    resume"}
		if !pauses {
			want = []string{"FAIL  pause", "remove the option on_idle pause"}
		}
		for _, text := range want {
			if !strings.Contains(stdout, text) {
				t.Errorf("%q is not in (%v)\n%s", text, err, stdout)
			}
		}
		if (err == nil) != pauses || len(f.deleted) != 1 {
			t.Errorf("it ends with %v, %d sandboxes were deleted", err, len(f.deleted))
		}
	}
}

func TestCommandsAreCaddys(t *testing.T) {
	root := &cobra.Command{Use: "code-interpreter"}
	caddycmd.Commands()["code-interpreter"].CobraFunc(root)
	for _, name := range []string{"sessions", "kill", "run", "doctor", "serve-local"} {
		if found, _, err := root.Find([]string{name}); err != nil || found.Name() != name {
			t.Errorf("%s: %v", name, err)
		}
	}
	root.SetArgs([]string{"sesions"})
	root.SetOut(io.Discard)
	root.SetErr(io.Discard)
	if err := root.ExecuteContext(t.Context()); err == nil {
		t.Error("a misspelt command succeeds")
	}
}

func TestDoctorNamesTheMend(t *testing.T) {
	for _, tc := range []struct {
		name string
		edit func(f *fakeE2B) map[string]any
		want string
	}{
		{"key", func(f *fakeE2B) map[string]any { f.refuse(http.StatusUnauthorized); return nil }, "the API key is refused"},
		{"template", func(f *fakeE2B) map[string]any { f.refuse(http.StatusNotFound); return nil }, "check the option template"},
		{"plan", func(f *fakeE2B) map[string]any { f.refuse(http.StatusTooManyRequests); return nil }, "lower sessions max"},
		{"server", func(f *fakeE2B) map[string]any { f.refuse(http.StatusServiceUnavailable); return nil }, "a problem of its own"},
		{"address", func(*fakeE2B) map[string]any { return map[string]any{"api_url": "http://127.0.0.1:1"} }, "api_url cannot be reached"},
		{"no URL", func(*fakeE2B) map[string]any { return map[string]any{"api_url": "nowhere"} }, "is not a URL"},
		{"state", func(*fakeE2B) map[string]any { return nil }, "use a template with E2B's code interpreter"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := newFakeE2B(t)
			stdout, _, err := command(t, doctorCommand(), "", "--config", configFile(t, f, tc.edit(f)))
			if exitCode(err) != exitFailed || !strings.Contains(stdout, "FAIL") || !strings.Contains(stdout, tc.want) {
				t.Errorf("%v, %q is not in\n%s", err, tc.want, stdout)
			}
		})
	}
}

func TestDoctorNamesWhatIsWrongWithTheConfiguration(t *testing.T) {
	stdout, _, err := command(t, doctorCommand(), "", "--config", emptyConfig(t))
	if exitCode(err) != exitFailed || !strings.Contains(stdout, "the configuration has no code_interpreter handler") {
		t.Errorf("%v, prints\n%s", err, stdout)
	}
}

// TestSessionsAndKillThroughARunningCaddy drives the commands and the admin API
// behind them through Caddy itself.
func TestSessionsAndKillThroughARunningCaddy(t *testing.T) {
	f, model := newFakeE2B(t), newModel(t)
	dir := shortTempDir(t)
	socket, adminSocket := filepath.Join(dir, "socket"), filepath.Join(dir, "admin")
	load(t, fmt.Sprintf(`{
	admin unix/%s
	persist_config off
}

http://localhost {
	bind unix/%s
	code_interpreter {
		sandbox e2b {
			api_key key
			api_url %s
			sandbox_url %s
		}
	}
	reverse_proxy %s
}
`, adminSocket, socket, f.URL, f.URL, model.URL))
	persist(t, socket, "one")
	persist(t, socket, "two")
	address := "unix/" + adminSocket

	stdout, _, err := command(t, sessionsCommand(), "", "--address", address)
	if lines := strings.Split(strings.TrimSpace(stdout), "\n"); err != nil || len(lines) != 3 || !strings.HasPrefix(lines[0], "ID ") {
		t.Fatalf("it prints\n%s%v", stdout, err)
	}
	stdout, _, err = command(t, sessionsCommand(), "", "--address", address, "--json")
	var list []sessionInfo
	if err != nil || json.Unmarshal([]byte(stdout), &list) != nil || len(list) != 2 {
		t.Fatalf("it prints\n%s%v", stdout, err)
	}
	if stdout, _, err := command(t, killCommand(), "", list[0].ID, "--address", address); err != nil || stdout != "ended 1\n" {
		t.Errorf("it prints %q, %v", stdout, err)
	}
	if id := <-f.deleted; id != list[0].Sandbox {
		t.Errorf("%s was deleted, want %s", id, list[0].Sandbox)
	}
	if _, _, err := command(t, killCommand(), "", list[0].ID, "--address", address); err == nil || !strings.Contains(err.Error(), "no session or sandbox") {
		t.Errorf("a second time: %v", err)
	}
	if stdout, _, err := command(t, killCommand(), "", "--identity", list[1].Identity, "--address", address); err != nil || stdout != "ended 1\n" {
		t.Errorf("it prints %q, %v", stdout, err)
	}
	if _, _, err := command(t, killCommand(), "", "--address", address); exitCode(err) != exitNotRun {
		t.Errorf("nothing to end: %v", err)
	}
}

func TestSessionsSaysWhomItCannotReach(t *testing.T) {
	_, _, err := command(t, sessionsCommand(), "", "--address", "127.0.0.1:1")
	if err == nil || !strings.Contains(err.Error(), "127.0.0.1:1, which --address or --config name") {
		t.Errorf("error %v", err)
	}
}

func TestServeLocalAsksForAKeyBeyondThisMachine(t *testing.T) {
	spec, err := new(Local).spec(0)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	for _, address := range []string{"0.0.0.0:0", ":0", "192.0.2.1:80", "example.com:80", "nonsense"} {
		if err := serveLocal(t.Context(), spec, address, "", &out, nil); err == nil || !strings.Contains(err.Error(), "set E2B_API_KEY") {
			t.Errorf("%s: %v", address, err)
		}
	}
}

// lines is a writer that hands each write on.
type lines chan string

func (l lines) Write(b []byte) (int, error) {
	l <- string(b)
	return len(b), nil
}

func TestServeLocalServesClientsOfE2B(t *testing.T) {
	spec, err := new(Local).spec(0)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	out, served := make(lines, 1), make(chan error, 1)
	go func() { served <- serveLocal(ctx, spec, "127.0.0.1:0", "", out, nil) }()
	var printed string
	select {
	case printed = <-out:
	case err := <-served:
		t.Fatal(err)
	}
	for line := range strings.Lines(printed) {
		name, value, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "export "), "=")
		t.Setenv(name, value)
	}
	name := filepath.Join(t.TempDir(), "Caddyfile")
	writeFile(t, name, "http://one.example {\n\tcode_interpreter {\n\t\tsandbox e2b\n\t}\n}\n")
	if stdout, _, err := command(t, doctorCommand(), "", "--config", name); err != nil {
		t.Errorf("%v after\n%s", err, stdout)
	}
	if stdout, _, err := command(t, runCommand(), "print(6*7)", "-", "--config", name); err != nil || stdout != "42\n" {
		t.Errorf("it prints %q: %v", stdout, err)
	}
	if os.Getenv(envAPIKey) == "" {
		t.Error("no key was made")
	}
	stop()
	if err := <-served; err != nil {
		t.Error(err)
	}
}

func TestSessionsArePrintedAsATable(t *testing.T) {
	var out bytes.Buffer
	now := time.Now()
	err := printSessions(&out, []sessionInfo{
		{ID: "0123456789ab", Identity: "ba9876543210", State: session.Idle, Kind: kindSession, Created: now.Add(-time.Hour), LastUsed: now.Add(-time.Minute), Sandbox: "sb1"},
		{Identity: "ba9876543210", State: session.Starting, Kind: kindRequest, Requests: 1},
	}, now)
	if err != nil {
		t.Fatal(err)
	}
	rows := strings.Split(out.String(), "\n")
	if got := strings.Join(strings.Fields(rows[1])[:6], " "); got != "0123456789ab ba9876543210 idle session 1h0m0s 1m0s" {
		t.Errorf("the first row is %q", got)
	}
	if got := strings.Join(strings.Fields(rows[2])[:6], " "); got != "- ba9876543210 starting request - -" {
		t.Errorf("the second row is %q", got)
	}
}
