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

package report

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"math"
)

// The plot's measures in pixels.
const (
	plotWidth  = 900
	plotLeft   = 430 // where the bars begin
	plotRight  = 70  // for the numbers behind them
	plotTop    = 46
	lineHeight = 26
	barHeight  = 12
)

// SVG returns the ratios to plain Caddy as a plot: a bar for each, the
// spread of the control as a band around 1, and the goal as a mark.
func (r *Report) SVG() []byte {
	var rows []Row
	most := 1.25
	for _, row := range r.Rows {
		if row.Unit == Times {
			rows = append(rows, row)
			most = max(most, row.Value)
			if row.Goal != nil {
				most = max(most, *row.Goal)
			}
		}
	}
	p := plot{scale: float64(plotWidth-plotLeft-plotRight) / (math.Ceil(most*4) / 4), rows: len(rows)}
	p.begin()
	for i := range rows {
		p.row(i, &rows[i])
	}
	p.text(plotLeft, plotTop+p.rows*lineHeight+18, "middle", "#555", "0")
	p.text(p.at(1), plotTop+p.rows*lineHeight+18, "middle", "#555", "1 = plain Caddy")
	p.b.WriteString("</svg>\n")
	return p.b.Bytes()
}

type plot struct {
	b     bytes.Buffer
	scale float64 // pixels of a ratio of 1
	rows  int
}

func (p *plot) begin() {
	height := plotTop + p.rows*lineHeight + 30
	fmt.Fprintf(&p.b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %[1]d %[2]d" font-family="sans-serif" font-size="12">`+"\n", plotWidth, height)
	p.rect(0, 0, plotWidth, height, "#fff")
	p.text(plotWidth/2, 18, "middle", "#111", "Caddy with code_interpreter, relative to plain Caddy (less is better)")
	p.text(plotWidth/2, 35, "middle", "#555", "bar: median of the rounds; grey: spread of plain against plain; black mark: goal")
	p.rect(p.at(1), plotTop, 1, p.rows*lineHeight, "#555")
}

func (p *plot) at(ratio float64) int { return plotLeft + int(math.Round(ratio*p.scale)) }

func (p *plot) row(i int, row *Row) {
	y := plotTop + i*lineHeight
	color := "#3b7dd8"
	if row.Verdict == Missed {
		color = "#d8653b"
	}
	p.text(plotLeft-8, y+17, "end", "#111", row.Title)
	if low, high := p.at(1-row.Spread), p.at(1+row.Spread); row.Control != nil {
		p.rect(low, y+2, max(high-low, 1), lineHeight-4, "#ddd")
	}
	p.rect(plotLeft, y+7, p.at(row.Value)-plotLeft, barHeight, color)
	p.rect(p.at(1), y, 1, lineHeight, "#555")
	if row.Goal != nil {
		p.rect(p.at(*row.Goal)-1, y+3, 2, lineHeight-6, "#000")
	}
	p.text(plotWidth-plotRight+8, y+17, "start", "#111", fmt.Sprintf("%.2f", row.Value))
}

func (p *plot) rect(x, y, width, height int, color string) {
	fmt.Fprintf(&p.b, `<rect x="%d" y="%d" width="%d" height="%d" fill="%s"/>`+"\n", x, y, max(width, 0), height, color)
}

func (p *plot) text(x, y int, anchor, color, s string) {
	fmt.Fprintf(&p.b, `<text x="%d" y="%d" text-anchor="%s" fill="%s">`, x, y, anchor, color)
	_ = xml.EscapeText(&p.b, []byte(s)) // a buffer takes everything
	p.b.WriteString("</text>\n")
}
