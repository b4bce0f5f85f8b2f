package sandbox

func helper(mode string) int { return 0 }
