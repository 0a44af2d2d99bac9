package main

import "testing"

func TestDemand(t *testing.T) {
	for _, c := range []struct {
		text, back string
		want       demand
	}{
		{"60%", "60%", demand{Share: 0.6}},
		{" 7.5 %", "7.5%", demand{Share: 0.075}},
		{"120%", "120%", demand{Share: 1.2}},
		{"1000", "1000", demand{Rate: 1000}},
		{"0.5", "0.5", demand{Rate: 0.5}},
	} {
		var d demand
		if err := d.Set(c.text); err != nil || d != c.want || d.String() != c.back {
			t.Errorf("%q: %+v, %q, %v, want %+v, %q", c.text, d, d.String(), err, c.want, c.back)
		}
	}
	for _, text := range []string{"", "%", "0", "0%", "-1", "-5%", "many", "NaN", "Inf", "60%%", "1e400"} {
		d := demand{Share: 0.6}
		if err := d.Set(text); err == nil || d.Share != 0.6 {
			t.Errorf("%q: %+v, %v, want an error and no change", text, d, err)
		}
	}
}
