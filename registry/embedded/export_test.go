package embedded

// SetFree makes the member believe that its disk has as much space as free says.
func SetFree(cfg *Config, free func() int64) {
	cfg.free = func(string) (int64, bool) { return free(), true }
}

// Local returns the address at which this process reaches the member.
func (m *Member) Local() string { return m.local() }
