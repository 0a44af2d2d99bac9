package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// demand is the load of a row: a share of the capacity, or a rate. It implements flag.Value.
type demand struct {
	Share float64 // of the measured capacity; a row may have a share of its own
	Rate  float64 // calls/s; if positive, the capacity is not measured
}

// String returns the form that Set reads.
func (d *demand) String() string {
	if d.Rate > 0 {
		return strconv.FormatFloat(d.Rate, 'f', -1, 64)
	}
	return strconv.FormatFloat(100*d.Share, 'f', -1, 64) + "%"
}

// Set reads a share of the capacity such as "60%", or a number of calls per second.
func (d *demand) Set(text string) error {
	number, isShare := strings.CutSuffix(strings.TrimSpace(text), "%")
	n, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if err != nil || n <= 0 || math.IsInf(n, 0) || math.IsNaN(n) {
		return fmt.Errorf("%q is not a load: use a share of the capacity such as 60%%, or calls/s such as 1000", text)
	}
	if isShare {
		*d = demand{Share: n / 100}
	} else {
		*d = demand{Rate: n}
	}
	return nil
}
