package main

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// lockAlone makes sure that this is the only run on the machine: two would measure each other. The
// lock ends with the process.
func lockAlone(file string) (unlock func() error, err error) {
	f, err := os.OpenFile(file, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the machine for one run: %w", err)
	}
	switch err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); {
	case errors.Is(err, syscall.EWOULDBLOCK):
		f.Close()
		return nil, fmt.Errorf("another run has locked %s: wait until it has ended", file)
	case err != nil:
		f.Close()
		return nil, fmt.Errorf("lock %s: %w", file, err)
	}
	return f.Close, nil
}

// crowdedShare is the share of the machine that others may use while a row runs alone.
const crowdedShare = 0.1

// crowded says that a row did not have the machine for itself, or is empty.
func (r *result) crowded() string {
	if r.Others == nil || *r.Others <= crowdedShare {
		return ""
	}
	return fmt.Sprintf("others used %.0f %% of the machine meanwhile: bars that depend on time say little", 100**r.Others)
}

// load says in a few words what the load of a row was, for the overview.
func (r *result) load() string {
	offered := r.find(rateOffered)
	if offered == nil {
		return "–"
	}
	text := offered.text()
	if capacity := r.find(capacityMeasured); capacity != nil && capacity.Value > 0 {
		text += fmt.Sprintf(", %.0f %% of the capacity", 100*offered.Value/capacity.Value)
	} else {
		text += ", given"
	}
	if n := r.find(clientProcesses); n != nil && n.Value > 1 {
		text += fmt.Sprintf(", %.0f processes", n.Value)
	} else {
		text += ", one process"
	}
	if r.crowded() != "" {
		text += ", not alone"
	}
	return text
}
