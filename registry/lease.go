package registry

import (
	"context"
	"time"
)

// Lease says how long a registry keeps the record of an instance without a sign of life.
type Lease struct {
	Key string // of the instance
	// TTL is after how long without a renewal the record is removed; 0: never, so that the record
	// of a process that was killed stays until an operator removes it.
	TTL  time.Duration
	Left time.Duration // until then
}

// A LeaseReader is a Resolver that knows the leases of a service's records. Leases blocks until the
// registry answers or ctx is done. Records that cannot be decoded are left out.
type LeaseReader interface {
	Leases(ctx context.Context, service string) ([]Lease, error)
}
