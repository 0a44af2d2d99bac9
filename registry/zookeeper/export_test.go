package zookeeper

import (
	"context"
	"reflect"

	"github.com/go-zookeeper/zk"
)

// WatchChannels returns the number of channels that the library keeps for watches of the
// connection over which the registry reads.
func (r *Registry) WatchChannels() (n int) {
	r.reader.mu.Lock()
	c := r.reader.current
	r.reader.mu.Unlock()
	c.mu.Lock() // orders the code below after the last change made by event
	defer c.mu.Unlock()
	watchers := reflect.ValueOf(c.session.conn).Elem().FieldByName("watchers")
	for it := watchers.MapRange(); it.Next(); {
		n += it.Value().Len()
	}
	return n
}

// LastTransaction returns the id of the latest transaction that the library has stored for the
// connection over which the registry reads.
func (r *Registry) LastTransaction() int64 {
	r.reader.mu.Lock()
	c := r.reader.current
	r.reader.mu.Unlock()
	return reflect.ValueOf(c.session.conn).Elem().FieldByName("lastZxid").Int()
}

// WriteEnded makes the requests of a write, or of a removal if data is nil, in the session of the
// connection after the attempt has ended.
func WriteEnded(c *zk.Conn, key string, data []byte) error {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	o := owner{id: c.SessionID()}
	var err error
	if data == nil {
		_, err = o.remove(ctx, c, key)
	} else {
		_, err = o.put(ctx, c, key, data, zk.WorldACL(zk.PermAll), true)
	}
	return err
}
