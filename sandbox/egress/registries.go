package egress

// RegistriesVersion changes with every change of the list below, so that what a run could reach is known later.
const RegistriesVersion = 1

// registryHosts serve packages to everyone. Hosts that store what anyone sends them, or that fetch on request
// from anywhere, do not belong here; where a registry does so itself, docs/operations/egress.md says it.
var registryHosts = []string{
	"registry.npmjs.org", "registry.yarnpkg.com", "nodejs.org",
	"pypi.org", "files.pythonhosted.org",
	"proxy.golang.org", "sum.golang.org", "storage.googleapis.com",
	"crates.io", "index.crates.io", "static.crates.io", "static.rust-lang.org",
	"rubygems.org", "index.rubygems.org",
	"repo.maven.apache.org", "repo1.maven.org", "plugins.gradle.org",
	"api.nuget.org", "repo.packagist.org", "hex.pm", "repo.hex.pm",
	"deb.debian.org", "security.debian.org", "archive.ubuntu.com", "security.ubuntu.com", "dl-cdn.alpinelinux.org",
}

// registryPaths narrows hosts that serve more than packages.
var registryPaths = map[string][]string{
	"storage.googleapis.com": {"/proxy-golang-org-prod/*"},
}

func registryRules() []Rule {
	rules := make([]Rule, 0, len(registryHosts))
	for _, host := range registryHosts {
		rules = append(rules, Rule{Host: host, Methods: []string{"GET", "HEAD"}, Paths: registryPaths[host]})
	}
	return rules
}
