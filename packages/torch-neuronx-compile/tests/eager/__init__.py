"""The op compiler: requests as the device makes them."""
