package embedded

// SetFree replaces the measurement of the free disk space by the function free.
func SetFree(cfg *Config, free func() int64) {
	cfg.free = func(string) (int64, bool) { return free(), true }
}

// SetHasty turns off syncing to the disk.
func SetHasty(cfg *Config) { cfg.hasty = true }

// Local returns the address at which this process reaches the member.
func (m *Member) Local() string { return m.local() }

// Fail writes the log entry after which etcd exits the process.
func (m *Member) Fail(message string) {
	done := make(chan struct{})
	go func() { defer close(done); zapTo(m.cfg.Logger, m.failed).Fatal(message) }()
	<-done
}
