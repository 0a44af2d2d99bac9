// Package oidctest tests the logins of the console at a provider of OpenID Connect of another
// project, zitadel/oidc. It is a module of its own, as that provider needs much that the command
// does not.
package oidctest
