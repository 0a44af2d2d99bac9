package run

import (
	"math"
	"reflect"

	"github.com/anser-rpc/anser/arena/internal/measure"
	"github.com/anser-rpc/anser/arena/internal/peer"
	"github.com/anser-rpc/anser/arena/internal/stat"
	"github.com/anser-rpc/anser/arena/result"
)

// newRow returns the row of a peer without a round.
func newRow(p *peer.Peer, workload string, shape result.Shape) *result.Row {
	return &result.Row{
		Peer: p.Name, Framework: p.Folder.Framework, Version: p.Folder.Version, Language: p.Folder.Language,
		Codec: p.Codec, Settings: p.Settings, Marks: p.Marks,
		Workload: workload, Shape: shape,
	}
}

// add enters a round into its row and renews the medians.
func add(row *result.Row, round result.Round) {
	row.Rounds = append(row.Rounds, round)
	row.Valid = true
	var good []result.Figures
	for i := range row.Rounds {
		r := &row.Rounds[i]
		row.Valid = row.Valid && measure.Valid(r)
		if r.Calls > 0 {
			good = append(good, r.Figures)
		}
	}
	if len(good) == 0 { // the errors are still to be seen
		row.Figures = round.Figures
		return
	}
	row.Figures = median(good)
	// An error in one round of three is an error: the median would hide it.
	row.Errors, row.Wrong = 0, 0
	for i := range row.Rounds {
		row.Errors += row.Rounds[i].Errors
		row.Wrong += row.Rounds[i].Wrong
	}
	of := func(figure func(*result.Figures) float64) [2]float64 {
		var values []float64
		for i := range good {
			values = append(values, figure(&good[i]))
		}
		return stat.Range(values)
	}
	row.CallsPerSecondRange = of(func(f *result.Figures) float64 { return f.CallsPerSecond })
	row.CPURange = of(func(f *result.Figures) float64 { return f.CPUUS })
	row.P50Range = of(func(f *result.Figures) float64 { return f.P50US })
	row.P99Range = of(func(f *result.Figures) float64 { return f.P99US })
}

// median returns the median of the rounds, figure by figure. A figure that is not known of a round
// is not known.
func median(rounds []result.Figures) result.Figures {
	var out result.Figures
	to := reflect.ValueOf(&out).Elem()
	for i := range to.NumField() {
		var values []float64
		for r := range rounds {
			from := reflect.ValueOf(&rounds[r]).Elem().Field(i)
			switch from.Kind() {
			case reflect.Int64:
				values = append(values, float64(from.Int()))
			case reflect.Float64:
				values = append(values, from.Float())
			case reflect.Pointer:
				if !from.IsNil() {
					values = append(values, from.Elem().Float())
				}
			}
		}
		m := stat.Median(values)
		switch f := to.Field(i); f.Kind() {
		case reflect.Int64:
			f.SetInt(int64(math.Round(m)))
		case reflect.Float64:
			f.SetFloat(m)
		case reflect.Pointer:
			if len(values) == len(rounds) {
				f.Set(reflect.ValueOf(&m))
			}
		}
	}
	return out
}
