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

package driver

import (
	"encoding/json"
	"strings"
	"testing"
)

const pyplot = "import matplotlib.pyplot as plt\n"

// figures runs code and returns its results that are pictures.
func figures(t *testing.T, p *program, code string) []event {
	t.Helper()
	var found []event
	for _, e := range p.run(code) {
		if e.Type == "error" {
			t.Fatalf("%q failed: %s\n%s", code, e.Value, e.Traceback)
		}
		if e.PNG != "" {
			pngSize(t, e.PNG)
			found = append(found, e)
		}
	}
	return found
}

func TestFiguresAreShownOnce(t *testing.T) {
	p := start(t)
	for _, test := range []struct {
		name, code string
		want       int
	}{
		{"left open", "plt.plot([1, 2]);", 1},
		{"shown", "plt.plot([1, 2])\nplt.show()", 1},
		{"shown by from-import", "from matplotlib.pyplot import show\nplt.plot([1])\nshow()", 1},
		{"two left open", "plt.plot([1]); plt.figure(); plt.plot([2]);", 2},
		{"two shown one after the other", "plt.plot([1]); plt.show(); plt.plot([2]); plt.show()", 2},
		{"the value of the cell", "fig, ax = plt.subplots()\nax.plot([1])\nfig", 1},
		{"a figure of an earlier cell", "fig", 1},
		{"displayed", "f = plt.figure(); f.add_subplot(); display(f)", 1},
		{"displayed twice on purpose", "f = plt.figure(); f.add_subplot(); display(f); display(f)", 2},
		{"shown by its own method", "f = plt.figure(); f.add_subplot(); f.show()", 1},
		{"without pyplot", "from matplotlib.figure import Figure\nf = Figure(); f.add_subplot().plot([1]); f", 1},
		{"with a chosen backend", "import matplotlib\nmatplotlib.use('Agg')\nplt.plot([1])\nplt.show()", 1},
		{"closed by the user", "plt.plot([1]); plt.close();", 0},
		{"of pandas", "import pandas as pd\npd.DataFrame({'a': [1, 2]}).plot();", 1},
		{"nothing more", "1;", 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := figures(t, p, pyplot+test.code); len(got) != test.want {
				t.Errorf("%d figures, want %d", len(got), test.want)
			}
		})
	}
}

func TestFiguresAreShownAfterAnError(t *testing.T) {
	p := start(t)
	events := p.run(pyplot + "plt.plot([1])\n1/0")
	if len(events) != 2 || events[0].Type != "error" || events[1].PNG == "" {
		t.Errorf("events %+v", events)
	}
	if events := p.run("2"); len(events) != 1 {
		t.Errorf("the next cell shows %+v", events)
	}
}

func TestFiguresAreBounded(t *testing.T) {
	p := start(t)
	events := p.run(pyplot + "plt.rcParams['figure.max_open_warning'] = 0\n" +
		"for i in range(100): plt.figure(figsize=(1, 1)).add_subplot()\n" +
		"len(plt.get_fignums())")
	shown, open := 0, ""
	for _, e := range results(events) {
		if e.PNG != "" {
			shown++
		} else {
			open = e.Text
		}
	}
	if shown != 60 || open != "60" {
		t.Errorf("%d figures shown, %s open", shown, open)
	}
	if note := output(events, "stderr"); note != "[40 more figures are not shown: a cell shows at most 60]\n" {
		t.Errorf("note %q", note)
	}
}

func TestImagesOfPillowAreShown(t *testing.T) {
	p := start(t)
	if got := figures(t, p, "from PIL import Image\nImage.new('RGB', (4, 3)).show()"); len(got) != 1 {
		t.Errorf("%d pictures", len(got))
	}
}

func TestCharts(t *testing.T) {
	p := start(t)
	flat := `"x_label":null,"x_unit":null,"y_label":null,"y_unit":null`
	for _, test := range []struct{ name, code, want string }{
		{"scatter", "plt.scatter([1, 2], [3, 4], label='s'); plt.xticks([1, 2]); plt.yticks([3]); plt.xlabel('t (s)');", `{
			"type":"scatter","title":null,"elements":[{"label":"s","points":[[1,3],[2,4]]}],
			"x_label":"t (s)","x_unit":"s","y_label":null,"y_unit":null,
			"x_ticks":[1,2],"x_tick_labels":["1","2"],"x_scale":"linear",
			"y_ticks":[3],"y_tick_labels":["3"],"y_scale":"linear"}`},
		{"pie", "plt.pie([1, 3], labels=['a', 'b']); plt.title('P');", `{
			"type":"pie","title":"P","elements":[{"label":"a","angle":90,"radius":1},{"label":"b","angle":270,"radius":1}]}`},
		{"box", "plt.boxplot([[1, 2, 3, 4, 20]]);", `{"type":"box_and_whisker","title":null,"elements":[
			{"label":"1","min":1,"first_quartile":2,"median":3,"third_quartile":4,"max":4,"outliers":[20]}],` + flat + `}`},
		{"boxes across, filled", "plt.boxplot([[1, 2, 3], [2, 3, 9]], patch_artist=True, vert=False, whis=100);", `{
			"type":"box_and_whisker","title":null,"elements":[
			{"label":"1","min":1,"first_quartile":1.5,"median":2,"third_quartile":2.5,"max":3,"outliers":[]},
			{"label":"2","min":2,"first_quartile":2.5,"median":3,"third_quartile":6,"max":9,"outliers":[]}],` + flat + `}`},
		{"bars across", "plt.barh(['a', 'b'], [3, 5], label='g');", `{"type":"bar","title":null,"elements":[
			{"label":"a","group":"g","value":3},{"label":"b","group":"g","value":5}],` + flat + `}`},
		{"grouped bars", "plt.bar([0, 1], [1, 2], label='one'); plt.bar([0, 1], [3, 4]); plt.xticks([0, 1], ['x', 'y']);", `{
			"type":"bar","title":null,"elements":[
			{"label":"x","group":"one","value":1},{"label":"y","group":"one","value":2},
			{"label":"x","group":"Group 1","value":3},{"label":"y","group":"Group 1","value":4}],` + flat + `}`},
		{"a bar of no height", "plt.bar(['x', 'y'], [1, float('nan')]);", `{"type":"bar","title":null,"elements":[
			{"label":"x","group":"Group 0","value":1},{"label":"y","group":"Group 0","value":null}],` + flat + `}`},
		{"three dimensions", "plt.figure().add_subplot(projection='3d').plot([1, 2], [3, 4], [5, 6]);", `{"type":"unknown","title":null,"elements":[]}`},
		{"several axes", "f, a = plt.subplots(1, 2); f.suptitle('S'); a[0].pie([1]); a[1].imshow([[1]]);", `{
			"type":"superchart","title":"S","elements":[
			{"type":"pie","title":null,"elements":[{"label":"","angle":360,"radius":1}]},
			{"type":"unknown","title":null,"elements":[]}]}`},
		{"dates", "import datetime\nplt.plot([datetime.date(2024, 1, 1)], [1]); plt.xticks([datetime.date(2024, 1, 1)], ['d']); plt.yticks([1], ['1']);", `{
			"type":"line","title":null,"elements":[{"label":"Line 0","points":[["2024-01-01",1]]}],` + flat + `,
			"x_ticks":["2024-01-01T00:00:00+00:00"],"x_tick_labels":["d"],"x_scale":"datetime",
			"y_ticks":[1],"y_tick_labels":["1"],"y_scale":"linear"}`},
		{"categories and a guide", "plt.plot(['u', 'v'], [1, 2]); plt.axhline(1); plt.yscale('log'); plt.yticks([1], ['1']); plt.minorticks_off();", `{
			"type":"line","title":null,"elements":[{"label":"Line 0","points":[["u",1],["v",2]]}],` + flat + `,
			"x_ticks":[0,1],"x_tick_labels":["u","v"],"x_scale":"categorical",
			"y_ticks":[1],"y_tick_labels":["1"],"y_scale":"log"}`},
		{"many points", "plt.plot(range(30000));", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := figures(t, p, pyplot+test.code)
			if len(got) != 1 {
				t.Fatalf("%d figures", len(got))
			}
			want := ""
			if test.want != "" {
				want = string(canonical(t, json.RawMessage(test.want)))
			}
			if chart := string(canonical(t, got[0].Chart)); chart != want {
				t.Errorf("got  %s\nwant %s", chart, want)
			}
		})
	}
}

func TestLargeResultsAreLeftOutWithANote(t *testing.T) {
	p := start(t)
	events := p.run("class B:\n  def _repr_html_(self): return 'x' * (20 << 20)\nB()")
	if got := results(events); len(got) != 1 || got[0].HTML != "" || !strings.HasPrefix(got[0].Text, "<__main__.B") {
		t.Errorf("%d results", len(got))
	}
	if note := output(events, "stderr"); note != "[html of 20971520 bytes is too large to show]\n" {
		t.Errorf("note %q", note)
	}
	got := results(p.run("list(range(10**6))"))
	if len(got) != 1 || got[0].JSON != nil || !strings.HasSuffix(got[0].Text, " 999,\n ...]") {
		t.Errorf("a long list is %d characters, JSON %d", len(got[0].Text), len(got[0].JSON))
	}
}
