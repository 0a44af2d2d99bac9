package rpcxlayout

import (
	"errors"
	"net/url"
	"strings"

	"github.com/anser-rpc/anser/registry/internal/target"
)

// ErrNoBase is the error of a base path that is empty or has an empty part.
var ErrNoBase = errors.New("there is no base path of rpcx, or it has an empty part: use that of rpcx's plugin, such as /rpcx")

// CheckBase returns an error unless the path can be a base path.
func CheckBase(base string) error {
	if strings.Trim(base, "/") == "" || strings.Contains(base, "//") {
		return ErrNoBase
	}
	return nil
}

// Target splits a target such as etcd+rpcx://127.0.0.1:2379/rpcx/Arith. The scheme is that of the
// kind with "+rpcx".
func Target(k target.Kind, u *url.URL) (servers []string, base, service string, err error) {
	k.Name += "+rpcx"
	if err := k.Check(u); err != nil {
		return nil, "", "", err
	}
	if servers, err = k.Servers(u); err != nil {
		return nil, "", "", err
	}
	base, service, err = k.Path(u, "", CheckBase)
	return servers, base, service, err
}
