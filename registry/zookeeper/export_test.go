package zookeeper

import "reflect"

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
