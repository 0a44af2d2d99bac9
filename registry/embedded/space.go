package embedded

import (
	"context"
	"os"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/etcdserver"
	"go.etcd.io/etcd/server/v3/storage/datadir"
)

// spaceInterval is the interval between two measurements of the disk.
const spaceInterval = time.Second

// guardSpace refuses writes while the member's disk is nearly full, with etcd's own alarm for
// that: if etcd runs out of space in the middle of a write, it cannot continue. The returned
// function stops the guard.
func guardSpace(server *etcdserver.EtcdServer, cfg Config) (stop func()) {
	if cfg.MinFree < 0 {
		return func() {}
	}
	g := &spaceGuard{server: server, cfg: cfg}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(spaceInterval)
		defer tick.Stop()
		for g.look(ctx); ; g.look(ctx) {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	})
	return func() { cancel(); wg.Wait() }
}

type spaceGuard struct {
	server  *etcdserver.EtcdServer
	cfg     Config
	claimed int64 // size up to which the database has disk blocks
}

// claim reserves disk blocks for the whole size of the database. etcd grows the file by 16 MiB at
// a time and fills it later: if the disk were full by then, etcd would fail, even on a delete.
func (g *spaceGuard) claim() {
	file := datadir.ToBackendFileName(g.cfg.Dir)
	info, err := os.Stat(file)
	if err != nil || info.Size() <= g.claimed {
		return
	}
	if err := allocate(file, info.Size()); err != nil {
		g.cfg.Logger.Warn("the registry could not claim space for its database", "file", file, "error", err)
		return
	}
	g.claimed = info.Size()
}

func (g *spaceGuard) look(ctx context.Context) {
	free, ok := g.cfg.free(g.cfg.Dir)
	if !ok {
		return
	}
	if free >= g.cfg.MinFree {
		g.claim()
	}
	alarmed := g.alarmed()
	switch {
	case free < g.cfg.MinFree && !alarmed:
		g.cfg.Logger.Error("the disk of the registry is nearly full; it refuses writes until there is more space",
			"dir", g.cfg.Dir, "free", free, "need", g.cfg.MinFree)
		g.set(ctx, pb.AlarmRequest_ACTIVATE)
	case free >= g.cfg.MinFree && alarmed && !g.overQuota():
		g.cfg.Logger.Info("the registry takes writes again", "dir", g.cfg.Dir, "free", free)
		g.set(ctx, pb.AlarmRequest_DEACTIVATE)
	}
}

// overQuota reports whether the alarm may be etcd's own, for a database over its quota.
func (g *spaceGuard) overQuota() bool {
	quota := g.server.Cfg.QuotaBackendBytes
	if quota <= 0 {
		quota = 2 << 30 // etcd's default
	}
	return g.server.Backend().Size() >= quota
}

func (g *spaceGuard) alarmed() bool {
	for _, alarm := range g.server.Alarms() {
		if alarm.Alarm == pb.AlarmType_NOSPACE && alarm.MemberID == uint64(g.server.MemberID()) {
			return true
		}
	}
	return false
}

// set changes the alarm. Without a majority of members it fails, and is repeated after the next
// measurement.
func (g *spaceGuard) set(ctx context.Context, action pb.AlarmRequest_AlarmAction) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	_, err := g.server.Alarm(ctx, &pb.AlarmRequest{
		MemberID: uint64(g.server.MemberID()), Action: action, Alarm: pb.AlarmType_NOSPACE,
	})
	if err != nil && ctx.Err() == nil {
		g.cfg.Logger.Warn("the registry could not change its disk space alarm", "error", err)
	}
}
