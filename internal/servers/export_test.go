package servers

// Free reports whether a port of Ports is available.
func Free(port int) bool {
	signs := take(port, 1)
	closeAll(signs)
	return signs != nil
}
