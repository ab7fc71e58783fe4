// The package has an assembly file so that Go accepts functions without a body, which are linked by
// name.
