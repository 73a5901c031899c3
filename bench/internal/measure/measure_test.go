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

package measure

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/caddy-code-interpreter/caddy-code-interpreter/bench/internal/gateway"
)

func TestSeriesAreInTheOrderOfTheRounds(t *testing.T) {
	r := Rounds{"ours": {{Requests: 10, CPU: time.Millisecond}, {Requests: 5, CPU: time.Millisecond}}}
	if got := r.Series("ours", Sample.PerRequest); !slices.Equal(got, []float64{100, 200}) {
		t.Errorf("Series = %v, want [100 200]", got)
	}
	if got := r.Series("plain", Sample.PerRequest); len(got) != 0 {
		t.Errorf("Series of an arm that was not measured = %v", got)
	}
}

func TestGatewayThatCannotStartEndsTheMeasurement(t *testing.T) {
	broken := errors.New("no such gateway")
	arms := []Arm{{Name: "ours", Command: gateway.Command{Name: "ours", Args: func(string, int) ([]string, error) { return nil, broken }}}}
	if _, err := Compare(t.Context(), Pace{Rounds: 2}, arms); !errors.Is(err, broken) {
		t.Errorf("Compare = %v", err)
	}
}
