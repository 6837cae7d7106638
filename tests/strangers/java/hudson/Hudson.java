// SPDX-License-Identifier: GPL-3.0-or-later
// Starts the web application in a folder on a free port of the loopback, and prints the port.
// The launcher that it comes with refuses Javas of today.

import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;
import org.eclipse.jetty.security.HashLoginService;
import org.eclipse.jetty.webapp.WebAppContext;

public final class Hudson {
    public static void main(String[] arguments) throws Exception {
        Server server = new Server();
        ServerConnector connector = new ServerConnector(server);
        connector.setHost("127.0.0.1");
        server.addConnector(connector);
        WebAppContext application = new WebAppContext(arguments[0], "/");
        application.setConfigurationClasses(new String[] {
            "org.eclipse.jetty.webapp.WebInfConfiguration",
            "org.eclipse.jetty.webapp.WebXmlConfiguration"});
        application.getSecurityHandler().setLoginService(new HashLoginService("none"));
        server.setHandler(application);
        server.start();
        System.out.println("port " + connector.getLocalPort());
    }
}
