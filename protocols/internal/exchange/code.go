package exchange

import (
	"errors"
	"net/http"

	"github.com/anser-rpc/anser"
)

// codes are Connect's names of the codes, and their status in HTTP.
var codes = [...]struct {
	name   string
	status int
}{
	anser.OK:                 {"unknown", 500},
	anser.Canceled:           {"canceled", 499},
	anser.Unknown:            {"unknown", 500},
	anser.InvalidArgument:    {"invalid_argument", 400},
	anser.DeadlineExceeded:   {"deadline_exceeded", 504},
	anser.NotFound:           {"not_found", 404},
	anser.AlreadyExists:      {"already_exists", 409},
	anser.PermissionDenied:   {"permission_denied", 403},
	anser.ResourceExhausted:  {"resource_exhausted", 429},
	anser.FailedPrecondition: {"failed_precondition", 400},
	anser.Aborted:            {"aborted", 409},
	anser.OutOfRange:         {"out_of_range", 400},
	anser.Unimplemented:      {"unimplemented", 501},
	anser.Internal:           {"internal", 500},
	anser.Unavailable:        {"unavailable", 503},
	anser.DataLoss:           {"data_loss", 500},
	anser.Unauthenticated:    {"unauthenticated", 401},
}

// CodeName returns the name of a code as in Connect, such as "not_found".
func CodeName(c anser.Code) string {
	if int(c) < len(codes) {
		return codes[c].name
	}
	return "unknown"
}

// HTTPStatus returns the HTTP status for a code.
func HTTPStatus(c anser.Code) int {
	if int(c) < len(codes) {
		return codes[c].status
	}
	return 500
}

// HTTPStatusOf returns the HTTP status for an error in JSON: for some there is a closer one than
// that of their code, which Connect demands.
func HTTPStatusOf(e *anser.Error) int {
	switch {
	case errors.Is(e, anser.ErrTooLarge):
		return http.StatusRequestEntityTooLarge
	case errors.Is(e, errSlow):
		return http.StatusRequestTimeout
	case errors.Is(e, anser.ErrKeyReused):
		return http.StatusUnprocessableEntity // as the draft of the header says
	}
	return HTTPStatus(e.Code)
}

// CodeOfName returns the code of a name of Connect.
func CodeOfName(name string) (anser.Code, bool) {
	for c := range codes {
		if c := anser.Code(c); c != anser.OK && codes[c].name == name {
			return c, true
		}
	}
	return 0, false
}
