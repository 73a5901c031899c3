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
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	_ "github.com/caddyserver/caddy/v2/modules/filestorage" // for the examples
	_ "github.com/caddyserver/caddy/v2/modules/metrics"
)

// fence finds blocks of code in Markdown: their language and their content.
var fence = regexp.MustCompile("(?ms)^```([a-z ]+)\n(.*?)^```$")

// example is a block of code in the documentation.
type example struct{ file, language, content string }

// examples returns the blocks of a language in the documentation.
func examples(t *testing.T, language string) []example {
	t.Helper()
	files, err := filepath.Glob("docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	var list []example
	for _, file := range append(files, "README.md") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range fence.FindAllStringSubmatch(string(text), -1) {
			if match[1] == language {
				list = append(list, example{file, language, match[2]})
			}
		}
	}
	if len(list) == 0 {
		t.Fatalf("the documentation has no example in %q", language)
	}
	return list
}

// documented sets what the examples take from the environment, and returns an
// example with the files that it reads.
func documented(t *testing.T, text string) string {
	t.Helper()
	t.Setenv("E2B_API_KEY", "e2b_0123456789abcdef")
	t.Setenv("OPENAI_API_KEY", "sk-0123456789abcdef")
	t.Setenv("OPENROUTER_API_KEY", "sk-or-0123456789abcdef")
	t.Setenv("AZURE_OPENAI_API_KEY", "0123456789abcdef")
	t.Setenv("GATEWAY_KEY", "gw_0123456789abcdef")
	secrets := t.TempDir()
	for _, name := range []string{"e2b", "sessions"} {
		writeFile(t, filepath.Join(secrets, name), "e2b_0123456789abcdef0123456789abcdef")
	}
	return strings.NewReplacer("/run/secrets", secrets, "/srv/shared", secrets).Replace(text)
}

// TestDocumentedCaddyfilesLoad loads every Caddyfile of the documentation as
// "caddy validate" does.
func TestDocumentedCaddyfilesLoad(t *testing.T) {
	for _, e := range examples(t, "caddyfile") {
		if strings.Contains(e.content, "[<matcher>]") {
			continue // the grammar of the options
		}
		name, _, _ := strings.Cut(e.content, "\n")
		t.Run(e.file+"/"+name, func(t *testing.T) {
			text := documented(t, e.content)
			config, err := adapt(t, text)
			if err != nil {
				t.Fatalf("%v in\n%s", err, text)
			}
			validate(t, config)
		})
	}
}

// TestDocumentedJSONLoads loads every handler in JSON.
func TestDocumentedJSONLoads(t *testing.T) {
	for _, e := range examples(t, "json handler") {
		t.Run(e.file, func(t *testing.T) {
			validate(t, `{"apps": {"http": {"servers": {"docs": {"listen": [":4000"], "routes": [{"handle": [`+
				documented(t, e.content)+`]}]}}}}}`)
		})
	}
}

// TestEveryOptionIsInTheReference compares it to the fields of the module.
func TestEveryOptionIsInTheReference(t *testing.T) {
	text := readText(t, "docs/REFERENCE.md")
	for _, part := range []any{CodeInterpreter{}, E2B{}, Local{}, Sessions{}} {
		for field := range reflect.TypeOf(part).Fields() {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			if name != "" && !strings.Contains(text, "`"+name+"`") {
				t.Errorf("docs/REFERENCE.md does not have the option %s of %T", name, part)
			}
		}
	}
}

// quoted finds the messages in the first column of a table.
var quoted = regexp.MustCompile("(?m)^\\| `([^`]+)`")

// TestTroubleshootingQuotesWhatIsSaid looks for the messages of models and logs
// in the source.
func TestTroubleshootingQuotesWhatIsSaid(t *testing.T) {
	var source strings.Builder
	for _, pattern := range []string{"*.go", "handler/*.go", "session/*.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			source.WriteString(readText(t, file))
		}
	}
	parts := strings.Split(readText(t, "docs/TROUBLESHOOTING.md"), "\n## ")
	checked := 0
	for _, part := range parts {
		if !strings.HasPrefix(part, "The model says") && !strings.HasPrefix(part, "Log messages") {
			continue
		}
		for _, match := range quoted.FindAllStringSubmatch(part, -1) {
			checked++
			if !strings.Contains(source.String(), match[1]) {
				t.Errorf("nothing says %q", match[1])
			}
		}
	}
	if checked < 10 {
		t.Errorf("only %d messages were looked for", checked)
	}
}

// validate loads a configuration without running it.
func validate(t *testing.T, text string) {
	t.Helper()
	var config *caddy.Config
	if err := json.Unmarshal([]byte(text), &config); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	if err := caddy.Validate(config); err != nil {
		t.Errorf("%v in\n%s", err, text)
	}
	drains.work.Wait()
}
