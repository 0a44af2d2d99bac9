package zookeeper

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/registry/internal/upkeep"
)

// revision returns the revision of a document: the ID of the transaction that wrote it, which
// grows even if a document is deleted and created again.
func revision(zxid int64) uint64 { return uint64(zxid) }

// Load implements registry.Store. It waits for ZooKeeper until ctx is done.
func (r *Registry) Load(ctx context.Context, name string) (registry.Document, error) {
	doc := registry.Document{Name: name}
	if err := registry.CheckDocument(name); err != nil {
		return doc, err
	}
	node := r.documentPath(name)
	found, err := ask(ctx, r, func(_ *connection, conn *zk.Conn) (registry.Document, error) {
		data, stat, err := conn.Get(node)
		if errors.Is(err, zk.ErrNoNode) {
			return doc, nil
		}
		if err != nil {
			return doc, err
		}
		return registry.Document{Name: name, Revision: revision(stat.Mzxid), Data: data}, nil
	})
	if err != nil {
		return doc, fmt.Errorf("load document %q: %w", name, r.explain(node, err))
	}
	return found, nil
}

// Save implements registry.Store. It waits for a connection until ctx is done, and sends the
// document once.
func (r *Registry) Save(ctx context.Context, doc registry.Document) (uint64, error) {
	if err := doc.Validate(); err != nil {
		return 0, err
	}
	data := append([]byte(nil), doc.Data...)
	node := r.documentPath(doc.Name)
	ctx, cancel := r.life.Within(ctx)
	defer cancel()
	failed := func(err error) error {
		if errors.Is(err, registry.ErrConflict) {
			return err
		}
		return fmt.Errorf("save document %q: %w", doc.Name, r.explain(node, err))
	}
	var reason error
	c, err := r.reader.connection(ctx, func(err error) { reason = err })
	if err != nil {
		return 0, failed(upkeep.Because(err, reason))
	}
	answer := make(chan uint64, 1)
	err = c.do(ctx, func(conn *zk.Conn) error {
		save := r.replace
		if doc.Revision == 0 {
			save = r.create
		}
		rev, err := save(conn, node, data, doc.Revision)
		answer <- rev
		return err
	})
	if err != nil {
		return 0, failed(err)
	}
	return <-answer, nil
}

func (c *config) create(conn *zk.Conn, node string, data []byte, _ uint64) (uint64, error) {
	if err := makeParents(conn, node, c.acl); err != nil {
		return 0, err
	}
	_, err := conn.Create(node, data, 0, c.acl)
	if errors.Is(err, zk.ErrNodeExists) {
		return 0, registry.ErrConflict
	}
	if err != nil {
		return 0, err
	}
	there, stat, err := conn.Exists(node)
	if err != nil {
		return 0, err
	}
	if !there {
		return 0, errors.New("the document was deleted right after it was created")
	}
	return revision(stat.Czxid), nil // another process may have replaced it meanwhile
}

func (c *config) replace(conn *zk.Conn, node string, data []byte, from uint64) (uint64, error) {
	there, stat, err := conn.Exists(node)
	if err != nil {
		return 0, err
	}
	if !there || revision(stat.Mzxid) != from {
		return 0, registry.ErrConflict
	}
	stat, err = conn.Set(node, data, stat.Version)
	if errors.Is(err, zk.ErrBadVersion) || errors.Is(err, zk.ErrNoNode) {
		return 0, registry.ErrConflict
	}
	if err != nil {
		return 0, err
	}
	return revision(stat.Mzxid), nil
}

// Follow implements registry.Store.
func (r *Registry) Follow(ctx context.Context, name string, update func(registry.Document), trouble func(error)) error {
	if err := registry.CheckDocument(name); err != nil {
		return err
	}
	node, last, current := r.documentPath(name), uint64(0), false
	err := r.follow(ctx, node, func(ctx context.Context, c *connection, _ map[string]bool, _ bool) error {
		answer := make(chan registry.Document, 1)
		err := c.do(ctx, func(conn *zk.Conn) error {
			doc := registry.Document{Name: name}
			err := c.orAbsent(conn, node, func() error {
				data, stat, err := c.get(conn, node)
				if err == nil {
					doc.Revision, doc.Data = revision(stat.Mzxid), data
				}
				return err
			})
			answer <- doc
			return err
		})
		if err != nil {
			return r.explain(node, err)
		}
		if doc := <-answer; !current || doc.Revision != last {
			update(doc)
			current, last = true, doc.Revision
		}
		return nil
	}, func(err error) {
		current = false
		if trouble != nil {
			trouble(err)
		}
	})
	if err != nil {
		return fmt.Errorf("follow document %q: %w", name, err)
	}
	return nil
}
