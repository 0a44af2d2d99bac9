// Package auth contains ways for clients to authenticate to servers, and rules for authorizing
// their calls:
//
//	tokens, err := auth.OpenTokens("tokens.json")
//	policy, err := auth.OpenPolicy("policy.json")
//	s := anser.NewServer(anser.TLS(config), anser.Authenticate(tokens), anser.Authorize(policy))
//
//	c, err := anser.Dial("10.0.0.7:8972", anser.TLS(config), auth.TokenFile("token"))
//
// There are tokens, certificates of mutual TLS with revocation lists, and signatures with a shared
// secret. Files are followed on disk: a change takes effect within a few seconds, also for
// existing connections. Package auth/jwt, a module of its own, supports JSON Web Tokens.
// docs/security.md compares them.
package auth
