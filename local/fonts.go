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
	"context"
	"encoding/json"
	"regexp"
	"strings"
	"time"

	"go.uber.org/zap"
)

// seedFile is a file that new sandboxes begin with.
type seedFile struct {
	path    string
	content []byte
}

// listFonts makes matplotlib write its list of the machine's fonts, which takes it
// seconds where there are many, and prints the list's path and content.
const listFonts = `
import importlib.util
if importlib.util.find_spec("matplotlib"):
    import glob, logging
    logging.disable()
    import matplotlib.font_manager
    for path in glob.glob("` + fontsDir + `/fontlist-*.json"):
        print(path)
        print(open(path).read())
`

// fontsDir is matplotlib's directory in a sandbox.
const fontsDir = "/tmp/.matplotlib"

// fontsFile is what may be a list of fonts.
var fontsFile = regexp.MustCompile(`^` + regexp.QuoteMeta(fontsDir) + `/fontlist-[A-Za-z0-9.-]+\.json$`)

// fontsTimeout is how long finding fonts may take: no machine has that many.
const fontsTimeout = 2 * time.Minute

// learnFonts has one sandbox find the machine's fonts, for all that come after:
// their first figure does not wait for it. No foreign code has run in it.
func (s *Server) learnFonts() {
	ctx, cancel := context.WithTimeout(s.ctx, fontsTimeout)
	defer cancel()
	s.findFonts(ctx)
}

func (s *Server) findFonts(ctx context.Context) {
	sb, err := s.launch(ctx)
	if err != nil {
		s.log.Debug("no sandbox to find fonts in", zap.Error(err)) // those for use say it louder
		return
	}
	defer sb.end()
	run, err := sb.driver.execute(sb.executeCommand(sb.kernel(""), listFonts, nil))
	if err != nil {
		return
	}
	var printed strings.Builder
	for {
		select {
		case e := <-run.events:
			var said struct{ Text string }
			if e.kind == "stdout" && json.Unmarshal(e.body, &said) == nil {
				printed.WriteString(said.Text)
			}
			if e.kind != kindEnd {
				continue
			}
			path, content, _ := strings.Cut(printed.String(), "\n")
			if fontsFile.MatchString(path) && json.Valid([]byte(content)) {
				s.engine.seed.Store(&seedFile{path: path, content: []byte(content)})
			}
			return
		case <-sb.gone:
			return
		case <-ctx.Done():
			return
		}
	}
}
