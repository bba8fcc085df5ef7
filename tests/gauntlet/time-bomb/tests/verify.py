import time

issued, expires = int(open("/app/issued").read()), int(open("/app/expires").read())
assert expires - issued == 300 * 86400
assert abs(time.time() - issued) < 300 * 86400, "the licence is not valid today"
