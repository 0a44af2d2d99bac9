package embedded

// SetFree makes the member believe that its disk has as much space as free says.
func SetFree(cfg *Config, free func() int64) {
	cfg.free = func(string) (int64, bool) { return free(), true }
}

// SetHasty has the member leave it to the system when what it writes reaches the disk.
func SetHasty(cfg *Config) { cfg.hasty = true }

// Local returns the address at which this process reaches the member.
func (m *Member) Local() string { return m.local() }

// Fail makes etcd log what it logs before it ends the process.
func (m *Member) Fail(message string) {
	done := make(chan struct{})
	go func() { defer close(done); zapTo(m.cfg.Logger, m.failed).Fatal(message) }()
	<-done
}
