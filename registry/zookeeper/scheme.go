package zookeeper

import (
	"net/url"

	"github.com/anser-rpc/anser/registry"
)

// Scheme lets a client find its service in ZooKeeper. It is an option of anser.Dial:
//
//	c, err := anser.Dial("zookeeper://127.0.0.1:2181/arith", zookeeper.Scheme())
//
// [Parse] describes the form of a target. The options are those of Dial; the prefix comes from the
// target. The connection to ZooKeeper is closed with the client.
func Scheme(opts ...Option) registry.Scheme {
	return registry.Scheme{Name: "zookeeper", Open: func(u *url.URL) (registry.Resolver, string, error) {
		endpoints, prefix, service, err := Parse(u)
		if err != nil {
			return nil, "", err
		}
		r, err := Dial(endpoints, append(append([]Option(nil), opts...), Prefix(prefix))...)
		if err != nil {
			return nil, "", err
		}
		return r, service, nil
	}}
}
