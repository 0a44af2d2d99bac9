package anser

// sides is the option that says which sides of a stream send any number of messages.
type sides struct{ client, server bool }

// StreamSides says which sides of a stream send any number of messages, for the list that
// Client.Streams returns. It is for streams that are opened by a name, as with the function Open:
// those of typed methods say it themselves. It changes nothing else, and nothing about other calls.
func StreamSides(client, server bool) CallOption { return sides{client, server} }

func (s sides) applyCall(o *callOptions) { o.sides = s }

// with returns the options of the opening of a stream behind those of its kind.
func (s sides) with(opts []CallOption) []CallOption { return append([]CallOption{s}, opts...) }
