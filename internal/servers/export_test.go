package servers

// Free reports whether somebody could have a port of Ports.
func Free(port int) bool {
	signs := take(port, 1)
	closeAll(signs)
	return signs != nil
}
