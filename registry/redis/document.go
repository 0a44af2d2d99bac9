package redis

import (
	"context"
	"fmt"
	"strconv"

	"github.com/redis/rueidis"

	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/registry/internal/upkeep"
)

// Load implements registry.Store. It waits for Redis until ctx is done.
func (r *Registry) Load(ctx context.Context, name string) (registry.Document, error) {
	if err := registry.CheckDocument(name); err != nil {
		return registry.Document{}, err
	}
	var doc registry.Document
	err := r.life.Ask(ctx, fmt.Sprintf("load document %q", name), func(ctx context.Context) (err error) {
		doc, err = r.load(ctx, name)
		return err
	})
	if err != nil {
		return registry.Document{}, err
	}
	return doc, nil
}

func (r *Registry) load(ctx context.Context, name string) (registry.Document, error) {
	doc := registry.Document{Name: name}
	var fields []rueidis.RedisMessage
	err := r.client.attempt(ctx, func(ctx context.Context, c rueidis.Client) (err error) {
		fields, err = c.Do(ctx, c.B().Hmget().Key(r.documentKey(name)).Field("revision", "data").Build()).ToArray()
		return err
	})
	if err != nil || len(fields) != 2 || fields[0].IsNil() {
		return doc, err
	}
	text, _ := fields[0].ToString()
	if doc.Revision, err = strconv.ParseUint(text, 10, 64); err != nil {
		return doc, upkeep.Hopeless(fmt.Errorf("redis hash %s has the revision %q: delete it, and save the document again", r.documentKey(name), text))
	}
	data, _ := fields[1].ToString()
	doc.Data = []byte(data)
	return doc, nil
}

// Save implements registry.Store. It makes one attempt: after an error it is unknown whether the
// document was written.
func (r *Registry) Save(ctx context.Context, doc registry.Document) (uint64, error) {
	if err := doc.Validate(); err != nil {
		return 0, err
	}
	ctx, cancel, err := r.life.Bind(ctx)
	if err != nil {
		return 0, err
	}
	defer cancel()
	var answer string
	err = r.client.attempt(ctx, func(ctx context.Context, c rueidis.Client) (err error) {
		answer, err = saveScript.Exec(ctx, c, []string{r.documentKey(doc.Name)},
			[]string{strconv.FormatUint(doc.Revision, 10), string(doc.Data), r.documentChannel(doc.Name)}).ToString()
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("save document %q: %w", doc.Name, err)
	}
	if answer == "" {
		return 0, registry.ErrConflict
	}
	return strconv.ParseUint(answer, 10, 64)
}

// Follow implements registry.Store. A document lost by Redis is an update to revision 0.
func (r *Registry) Follow(ctx context.Context, name string, update func(registry.Document), trouble func(error)) error {
	if err := registry.CheckDocument(name); err != nil {
		return err
	}
	look := func(ctx context.Context) (upkeep.View[registry.Document], error) {
		doc, err := r.load(ctx, name)
		return upkeep.View[registry.Document]{Value: doc, Again: poll}, err
	}
	same := func(a, b registry.Document) bool { return a.Revision == b.Revision }
	err := follow(ctx, r, r.documentChannel(name), look, same, update, trouble)
	if upkeep.IsHopeless(err) {
		return fmt.Errorf("follow document %q: %w", name, err)
	}
	return err
}
