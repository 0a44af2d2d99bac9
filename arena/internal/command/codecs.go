package command

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/anser-rpc/anser/arena/internal/build"
	"github.com/anser-rpc/anser/arena/internal/document"
	"github.com/anser-rpc/anser/arena/internal/machine"
	"github.com/anser-rpc/anser/arena/internal/peer"
	"github.com/anser-rpc/anser/arena/internal/repo"
	"github.com/anser-rpc/anser/arena/internal/table"
	"github.com/anser-rpc/anser/arena/result"
)

func newCodecs(s streams) *cobra.Command {
	var seconds float64
	var into, asJSON string
	c := &cobra.Command{
		Use:   "codecs",
		Short: "Measure the codecs alone",
		Long: strings.TrimSpace(`
Measure how long codecs take to encode and to decode the message of 581 bytes: the codecs of Anser,
and the libraries used by the Go peers. Each is measured three times, alternating with the others,
and the median counts.`),
		Example: "  arena codecs\n  arena codecs --into results.json",
		Args:    takes(0),
		RunE: func(c *cobra.Command, _ []string) error {
			if seconds <= 0 {
				return usagef("--seconds %g: it must be more than 0", seconds)
			}
			return codecs(c.Context(), s, seconds, into, asJSON)
		},
	}
	c.Flags().Float64Var(&seconds, "seconds", 1, "seconds per codec and direction")
	c.Flags().StringVar(&into, "into", "", "add the result to this results file of a run")
	c.Flags().StringVar(&asJSON, "json", "", "write a results file with only this result; - means standard output")
	return c
}

// codecsFolder is where the benchmark is. It is a module of its own, and is built like a peer.
func codecsFolder(root string) *peer.Folder {
	return &peer.Folder{
		Name: "codecs", Path: filepath.Join(root, "arena", "codecs"), Language: "go", Needs: []string{"go"},
		Build:  [][]string{{"go", "build", "-trimpath", "-o", "{out}/codecs", "."}},
		Inputs: []string{"codec", "internal/benchpb", "arena/peers/thrift-go", "arena/peers/tars", "arena/result"},
	}
}

func codecs(ctx context.Context, s streams, seconds float64, into, asJSON string) error {
	at, err := find()
	if err != nil {
		return err
	}
	var old *result.Document
	if into != "" { // a mistake in it is told before all is measured
		if old, err = document.Read(into); err != nil {
			return err
		}
	}
	began := time.Now().UTC().Truncate(time.Second)
	measured, err := measureCodecs(ctx, s, at, seconds)
	if err != nil {
		return err
	}
	if old != nil {
		old.Codecs, old.CodecsCommit = measured, ""
		if commit := repo.Commit(ctx, at.root, into); commit != old.Commit {
			old.CodecsCommit = commit
		}
		if err := document.Write(into, old); err != nil {
			return err
		}
	}
	doc := &result.Document{
		Schema: result.Schema, Command: []string{"go", "run", "./arena", "codecs", "--seconds=" + strconv.FormatFloat(seconds, 'f', -1, 64)},
		Commit: repo.Commit(ctx, at.root, into), Began: began, Ended: time.Now().UTC().Truncate(time.Second),
		Machine: machine.Describe(at.builder.Tools, nil), Rows: []result.Row{}, Codecs: measured,
	}
	switch asJSON {
	case "-":
		return document.Print(s.out, doc)
	case "":
		return showCodecs(s, measured)
	}
	return errors.Join(document.Write(asJSON, doc), showCodecs(s, measured))
}

func measureCodecs(ctx context.Context, s streams, at *place, seconds float64) ([]result.Codec, error) {
	folder := codecsFolder(at.root)
	if _, err := at.builder.Build(ctx, folder); err != nil {
		var command *build.Error
		if errors.As(err, &command) {
			fmt.Fprintf(s.err, "%s\n", command.Said)
		}
		return nil, err
	}
	each := time.Duration(seconds * float64(time.Second))
	c := exec.CommandContext(ctx, filepath.Join(at.builder.Out(folder), "codecs"), "--each", each.String())
	c.Cancel = func() error { return c.Process.Signal(os.Interrupt) }
	c.WaitDelay = time.Second
	c.Stderr = s.err
	out, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("measure the codecs: %w", err)
	}
	var measured []result.Codec
	d := json.NewDecoder(bytes.NewReader(out))
	d.DisallowUnknownFields()
	if err := d.Decode(&measured); err != nil {
		return nil, fmt.Errorf("measure the codecs: %w", err)
	}
	return measured, nil
}

func showCodecs(s streams, measured []result.Codec) error {
	sorted := slices.SortedFunc(slices.Values(measured), func(a, b result.Codec) int {
		return cmp.Compare(a.EncodeNS+a.DecodeNS, b.EncodeNS+b.DecodeNS)
	})
	t := table.New("CODEC", "LIBRARY", ">BYTES", ">ENCODE", ">DECODE", ">BOTH", ">ALLOCS", ">ALLOCATED")
	ns := func(f float64) string { return table.Count(f) + " ns" }
	for _, c := range sorted {
		t.Add(c.Name, c.Library, table.Count(float64(c.Bytes)), ns(c.EncodeNS), ns(c.DecodeNS), ns(c.EncodeNS+c.DecodeNS),
			fmt.Sprintf("%d + %d", c.EncodeAllocs, c.DecodeAllocs), table.Count(float64(c.EncodeBytes+c.DecodeBytes))+" B")
	}
	return t.Write(s.out)
}
