package gateway

import (
	"bytes"
	"context"
	"os"
	"time"

	"github.com/anser-rpc/anser/registry"
)

// filePoll is how often the file of a configuration is read.
const filePoll = time.Second

// FollowFile applies the configuration in a file when the text has changed since [Load], and when
// again is sent to, until ctx ends. A file that is there in part, such as one that is being
// written, is refused until it is complete; again may be nil.
func (g *Gateway) FollowFile(ctx context.Context, file string, again <-chan os.Signal) {
	known := g.plan.Load().config.text
	tick := time.NewTicker(filePoll)
	defer tick.Stop()
	for {
		asked := false
		select {
		case <-ctx.Done():
			return
		case <-again:
			asked = true
		case <-tick.C:
		}
		text, err := os.ReadFile(file)
		switch {
		case err != nil && asked:
			g.Refuse(err)
		case err == nil && (asked || !bytes.Equal(text, known)):
			known = text
			g.applyText(file, text)
		}
	}
}

// applyText applies a configuration.
func (g *Gateway) applyText(name string, text []byte) {
	c, err := Parse(name, text)
	if err != nil {
		g.Refuse(err)
		return
	}
	if c.Listen == "" { // the command line may have named it
		c.Listen = g.plan.Load().config.Listen
	}
	_ = g.Apply(c) // which logs and counts the error
}

// documentName is the name of a configuration among the documents of a registry.
func documentName(name string) string { return "gateway/" + name }

// LoadDocument reads the configuration with this name in a registry. ok is false if there is none.
func LoadDocument(ctx context.Context, store registry.Store, name string) (text []byte, revision uint64, ok bool, err error) {
	d, err := store.Load(ctx, documentName(name))
	return d.Data, d.Revision, d.Revision > 0, err
}

// SaveDocument puts a configuration into a registry, in place of the one of a revision; 0 means
// that there must be none. It is checked first. If another one is there by now, the error is
// registry.ErrConflict.
func SaveDocument(ctx context.Context, store registry.Store, name string, revision uint64, text []byte) error {
	if _, err := Parse(documentName(name), text); err != nil {
		return err
	}
	_, err := store.Save(ctx, registry.Document{Name: documentName(name), Revision: revision, Data: text})
	return err
}

// FollowDocument applies the configuration with this name in a registry when it has changed, until
// ctx ends. While the registry cannot be reached, and when the document is gone, the one in force
// stays.
func (g *Gateway) FollowDocument(ctx context.Context, store registry.Store, name string) error {
	known := g.plan.Load().config.text
	return store.Follow(ctx, documentName(name), func(d registry.Document) {
		if d.Revision == 0 || bytes.Equal(d.Data, known) {
			return
		}
		known = bytes.Clone(d.Data)
		g.applyText(documentName(name), d.Data)
	}, nil)
}
