package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// diskRows are those in which a disk is full.
func diskRows() []row {
	return []row{{
		name: "registry-disk-full", fault: "the disk of the embedded registry fills up completely", needs: rootRight, run: diskFull,
		bar: "0 failed calls; writes refused, reads and watches work, no data damaged, recovers",
	}}
}

// The disk of the registry is a file system in memory. etcd takes 64 MiB of it for the segment of
// its log that it writes and as much for the next, before there is any data.
const (
	diskBytes   = 192 << 20
	diskMinFree = 24 << 20
)

// diskFull fills the disk in two steps: below the limit at which the registry refuses writes, and,
// once it does, to the end.
func diskFull(w *world) (*result, error) {
	disk, err := w.folder("disk")
	if err != nil {
		return nil, err
	}
	if err := mountMemory(disk, diskBytes); err != nil {
		return nil, fmt.Errorf("mount a file system of %d MiB in memory: %w", diskBytes>>20, err)
	}
	w.undo = append(w.undo, func() error { return unmount(disk) })
	ballast := filepath.Join(disk, "ballast")
	var said string
	var refused, taken, again time.Duration
	var before, during, after int
	reads, watched := false, false
	o, err := w.survive(scenario{
		// A lease that expires while writes fail, for example because the machine was paused,
		// would not come back: that is not the subject of this row.
		cluster: clusterOptions{registry: config{Dir: filepath.Join(disk, "etcd"), MinFree: diskMinFree}, ttl: time.Minute},
		fault: func(c *cluster) (err error) {
			if err := c.client.ask("get", nil, &before); err != nil {
				return err
			}
			if err := fill(ballast, disk, diskMinFree/2); err != nil {
				return err
			}
			if refused, err = c.writes(false, &said); err != nil {
				return err
			}
			if err := fill(ballast, disk, 0); err != nil {
				return err
			}
			// A server leaves meanwhile: its record is deleted, which needs no space, and watches
			// report it.
			if _, err := c.servers[2].drain(); err != nil {
				return err
			}
			gone := c.servers[2]
			c.servers = c.servers[:2]
			if _, err := c.listed(); err != nil {
				return err
			}
			watched = true
			if err := c.client.ask("get", nil, &during); err != nil {
				return err
			}
			reads = during == before-1
			c.servers = append(c.servers, gone)
			return nil
		},
		heal: func(c *cluster) (err error) {
			if err := os.Remove(ballast); err != nil {
				return err
			}
			if taken, err = c.writes(true, nil); err != nil {
				return err
			}
			if c.servers[2], err = c.again(c.servers[2]); err != nil {
				return err
			}
			if _, err := c.listed(); err != nil {
				return err
			}
			if err := restartRegistry(c); err != nil { // it reads all data it has written, with its checksums
				return err
			}
			if again, err = c.listed(); err != nil {
				return err
			}
			return c.client.ask("get", nil, &after)
		},
	})
	if err != nil {
		return nil, err
	}
	r := new(result)
	r.common(o)
	r.allSucceeded(o)
	r.Errors = append(r.Errors, "a write was refused with: "+said)
	r.promise("writes refused as what they are", truth(strings.Contains(said, "space")), "", "1", strings.Contains(said, "space"))
	r.fact("writes refused after", refused.Seconds(), "s")
	r.promise("reads on a full disk", truth(reads), "", "1", reads)
	r.promise("changes seen by watches on a full disk", truth(watched), "", "1", watched)
	r.fact("writes taken again after", taken.Seconds(), "s")
	r.promise("records after a restart of the registry", float64(after), "", fmt.Sprint(serverCount), after == serverCount)
	r.fact("servers listed after that restart within", again.Seconds(), "s")
	return r, nil
}

func truth(ok bool) float64 {
	if ok {
		return 1
	}
	return 0
}

// writes waits until the registry takes writes, or refuses them, and returns how long that took.
func (c *cluster) writes(want bool, said *string) (time.Duration, error) {
	return c.until(fmt.Sprintf("the registry takes writes: %t", want), func() (bool, error) {
		var now string
		if err := c.client.ask("put", nil, &now); err != nil {
			return false, err
		}
		if said != nil {
			*said = now
		}
		return (now == "") == want, nil
	})
}

// fill writes to the file until the disk has left bytes free.
func fill(file, disk string, left int64) error {
	f, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	block := make([]byte, 64<<10)
	for {
		var st syscall.Statfs_t
		if err := syscall.Statfs(disk, &st); err != nil {
			return err
		}
		free := int64(st.Bavail) * int64(st.Bsize)
		if free <= left {
			return nil
		}
		_, err := f.Write(block[:min(free-left, int64(len(block)))])
		if errors.Is(err, syscall.ENOSPC) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
