package anser

import "slices"

// Announcements returns how the server is registered, by the options [Announce] in their order.
// What happens to an instance after that is up to its registry.
func (s *Server) Announcements() []AnnouncementStatus {
	if s.usable() != nil {
		return nil
	}
	a := &s.announced
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.status)
}
