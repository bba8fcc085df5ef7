import http.client

service = http.client.HTTPConnection("127.0.0.1", 8082, timeout=5)  # 127.0.0.1:8082
service.request("GET", "/health")
assert "healthy" in service.getresponse().read().decode()
