"""The backup tools of `coreos.com` clusters at work: observe, plan, act."""
