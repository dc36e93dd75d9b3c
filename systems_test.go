package courier_test

import (
	"os"
	"testing"

	"golang.org/x/tools/go/packages"
)

// The program has no errors of types on systems other than this one. Checking types takes a tenth of the
// processor time of compiling all packages for each system.
func TestSystems_HaveNoErrorsOfTypes(t *testing.T) {
	if os.Getenv("COURIER_TEST_LONG") == "" {
		t.Skip("it takes a minute: set COURIER_TEST_LONG")
	}
	for _, system := range []string{"darwin", "windows"} {
		t.Run(system, func(t *testing.T) {
			all, err := packages.Load(&packages.Config{
				Mode: packages.LoadAllSyntax,
				Env:  append(os.Environ(), "CGO_ENABLED=0", "GOOS="+system),
			}, "./...")
			if err != nil || len(all) == 0 {
				t.Fatal(len(all), err)
			}
			packages.Visit(all, nil, func(p *packages.Package) {
				for _, err := range p.Errors {
					t.Error(err)
				}
			})
		})
	}
}
