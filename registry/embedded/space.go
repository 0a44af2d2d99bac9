package embedded

import (
	"context"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/etcdserver"
)

// spaceInterval is the pause between two looks at the disk.
const spaceInterval = time.Second

// guardSpace refuses writes, by etcd's own alarm for that, while the disk of the member is nearly
// full: etcd that runs out of space in the middle of a write cannot go on. It returns what stops
// the guard.
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
	server *etcdserver.EtcdServer
	cfg    Config
}

func (g *spaceGuard) look(ctx context.Context) {
	free, ok := g.cfg.free(g.cfg.Dir)
	if !ok {
		return
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

// overQuota reports whether the alarm may be etcd's own, for a database that is too large.
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

// set changes the alarm. Without a majority of members it fails, and the next look tries again.
func (g *spaceGuard) set(ctx context.Context, action pb.AlarmRequest_AlarmAction) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	_, err := g.server.Alarm(ctx, &pb.AlarmRequest{
		MemberID: uint64(g.server.MemberID()), Action: action, Alarm: pb.AlarmType_NOSPACE,
	})
	if err != nil && ctx.Err() == nil {
		g.cfg.Logger.Warn("the registry could not change its alarm for a full disk", "error", err)
	}
}
